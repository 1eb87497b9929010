"""Executors of Spark die by SIGKILL while they write: no row is lost, no attempt doubles one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from tests.fault.conftest import NODES, make_replicated

pytestmark = [pytest.mark.fault, pytest.mark.spark]

APP = Path(__file__).with_name("executor_app.py")
TASKS, ROWS = 4, 20_000
_PAUSE_S = 0.1


@pytest.fixture
def target(trio, new_name) -> str:
    name = new_name()
    make_replicated(trio, name)
    return name


class Attempt(NamedTuple):
    """An attempt of a task, and the process id of the executor that it ran in."""

    task: int
    number: int
    executor: int


def executors() -> set[int]:
    """The process ids of the executors that this process' child started."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (folder / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in command and b"spark-class" not in command:
                environ = (folder / "environ").read_bytes()
                if f"KAFKAPROTO_FAULT={os.getpid()}\0".encode() in environ:
                    found.add(int(folder.name))
    return found


def places(servers, topic):
    """The places of each attempt's rows, in the order they are in, all in the right partition."""
    config = ClientConfig.parse({"bootstrap.servers": servers})
    found = defaultdict(list)
    for number in range(NODES):
        task = ReadTask((OffsetRange(topic, number, 0, None),))
        for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
            for value in batch.column(0).to_pylist():
                *attempt, place = map(int, value.split(b"/"))
                found[Attempt(*attempt)].append(place)
                assert attempt[0] % NODES == number
    connections_for(config).close()
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_a_killed_executor_loses_nothing(trio, target, tmp_path, kills):
    servers, gate = trio.bootstrap_servers, tmp_path / "gate"
    with (tmp_path / "log").open("w") as log:
        app = subprocess.Popen(
            [sys.executable, str(APP), servers, target, str(TASKS), str(ROWS), str(gate)],
            cwd=tmp_path,
            env=os.environ
            | {
                "PYSPARK_PYTHON": sys.executable,
                "KAFKAPROTO_FAULT": str(os.getpid()),
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        hit = kill_while_writing(app, servers, target, kills)
        gate.touch()
        assert app.wait(300) == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):  # all of it has ended
            os.killpg(app.pid, signal.SIGKILL)
        app.wait(30)
    found = places(servers, target)
    # In order, without a hole and without a double, as far as the attempt came.
    assert all(rows == list(range(len(rows))) for rows in found.values())
    complete = {attempt.task for attempt, rows in found.items() if len(rows) == ROWS}
    assert complete == set(range(TASKS))
    assert len(hit) == kills
    assert all(0 < len(found[attempt]) < ROWS for attempt in hit)
    print(f"\nexecutors killed while they wrote: {len(hit)}, after", end=" ")
    print(", ".join(f"{len(found[attempt])} rows of {ROWS}" for attempt in hit))


def kill_while_writing(app, servers, topic, kills) -> list[Attempt]:
    """Kill executors that have come to the middle of an attempt; those attempts."""
    deadline = Deadline.after(400)
    hit, before = [], {}
    while len(hit) < kills:
        deadline.check(f"killing {kills} executors")
        assert app.poll() is None, "the job has ended before all of them were killed"
        found, alive = places(servers, topic), executors()
        in_the_middle = [
            item
            for item, rows in found.items()
            if item.executor in alive and item not in hit and len(rows) < ROWS
        ]
        if in_the_middle:
            # Where rows are just coming, rather than one that waits for its second half.
            chosen = max(in_the_middle, key=lambda item: len(found[item]) - before.get(item, 0))
            os.kill(chosen.executor, signal.SIGKILL)
            hit.append(chosen)
        before = {item: len(rows) for item, rows in found.items()}
        time.sleep(_PAUSE_S)
    return hit
