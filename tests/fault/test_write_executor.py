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

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from tests.fault.conftest import NODES

pytestmark = [pytest.mark.fault, pytest.mark.spark]

APP = Path(__file__).with_name("executor_app.py")
TASKS, ROWS = 4, 20_000
_PAUSE_S = 0.1


@pytest.fixture
def target(trio, new_name) -> str:
    name = new_name()
    trio.create_topic(name, NODES, replication_factor=NODES, configs={"min.insync.replicas": "2"})
    return name


def executors() -> dict[int, float]:
    """The executors on this machine that this process' child started, by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (folder / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in command and b"spark-class" not in command:
                environ = (folder / "environ").read_bytes()
                if f"KAFKAPROTO_FAULT={os.getpid()}\0".encode() in environ:
                    found[int(folder.name)] = folder.stat().st_ctime
    return found


def values(servers, topic):
    """Partition to what it holds, in its order."""
    config = ClientConfig.parse({"bootstrap.servers": servers})
    found = defaultdict(list)
    for number in range(NODES):
        task = ReadTask((OffsetRange(topic, number, 0, None),), {}, {})
        for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
            found[number] += [value.decode() for value in batch.column(0).to_pylist()]
    connections_for(config).close()
    return found


def written(servers, topic):
    """How many rows there are."""
    return sum(map(len, values(servers, topic).values()))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_a_killed_executor_loses_nothing(trio, target, tmp_path, kills):
    servers = trio.bootstrap_servers
    with (tmp_path / "log").open("w") as log:
        app = subprocess.Popen(
            [sys.executable, str(APP), servers, target, str(TASKS), str(ROWS)],
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
        hits = kill_while_writing(app, servers, target, kills)
        assert app.wait(300) == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):  # all of it has ended
            os.killpg(app.pid, signal.SIGKILL)
        app.wait(30)
    attempts = defaultdict(list)
    for number, rows in values(servers, target).items():
        for row in rows:
            task, attempt, place = map(int, row.split("/"))
            assert task % NODES == number
            attempts[task, attempt].append(place)
    # In order, without a hole and without a double, as far as the attempt came.
    assert all(places == list(range(len(places))) for places in attempts.values())
    complete = {task for (task, _), places in attempts.items() if len(places) == ROWS}
    assert complete == set(range(TASKS))
    cut = sum(len(places) < ROWS for places in attempts.values())
    assert cut >= hits == kills
    print(f"\nexecutors killed while they wrote: {hits}; attempts that were cut: {cut}")


def kill_while_writing(app, servers, topic, kills) -> int:
    """Kill an executor whenever rows have come since the last one died."""
    deadline = Deadline.after(400)
    hits, seen = 0, 0
    while hits < kills:
        deadline.check(f"killing {kills} executors")
        assert app.poll() is None, "the job has ended before all of them were killed"
        now = written(servers, topic)
        alive = executors()
        if now > seen + 1000 and alive:
            os.kill(max(alive, key=alive.__getitem__), signal.SIGKILL)
            hits, seen = hits + 1, written(servers, topic)
        time.sleep(_PAUSE_S)
    return hits
