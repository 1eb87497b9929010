"""Spark really speculates: two attempts of one task write, and each row is seen once.

Spark runs a copy of a task on another host only, so this is a cluster of two: workers at two
loopback addresses. The first attempt of one task stops in its middle, with rows of its own in an
open transaction; the copy comes first, and Spark kills the other one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.find_spark_home import _find_spark_home

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net.ports import free_ports, wait_until_answers
from tests.fault.speculation_app import seen
from tests.settled import wait_until_settled

pytestmark = [pytest.mark.fault, pytest.mark.spark]

APP = Path(__file__).with_name("speculation_app.py")
HOSTS = ("127.0.0.1", "127.0.0.2")
KINDS = ("batch", "stream")
PARTITIONS, TASKS, ROWS = 2, 4, 16_000
_START_S, _JOB_S, _END_S = 60.0, 300.0, 30.0


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The URL of a Spark cluster with one core on each host."""
    folder = tmp_path_factory.mktemp("spark")
    (port,) = free_ports(1)
    url = f"spark://{HOSTS[0]}:{port}"
    with ExitStack() as stack:
        place = ("--host", HOSTS[0], "--port", str(port), "--webui-port", "0")
        stack.enter_context(running(folder, "master.Master", *place))
        wait_until_answers(HOSTS[0], port, Deadline.after(_START_S))
        for host in HOSTS:
            size = ("--webui-port", "0", "--cores", "1", "--memory", "700m")
            size += ("--work-dir", str(folder / host))
            stack.enter_context(running(folder, "worker.Worker", "--host", host, *size, url))
        yield url


@contextmanager
def running(folder, name, *arguments):
    """A process of Spark's own cluster, with all that it starts."""
    command = [f"{_find_spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
    with (folder / f"{name}-{len(list(folder.iterdir()))}.log").open("w") as log:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        finally:
            with suppress(ProcessLookupError):  # all of it has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def environment():
    own = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parents[2])}
    return os.environ | own | {"SPARK_LOCAL_IP": HOSTS[0]}


class Written(NamedTuple):
    """What the application wrote for one kind of query: where to, and its marks of attempts."""

    topic: str
    folder: Path


@pytest.fixture(scope="module")
def written(master, broker, new_topic, tmp_path_factory):
    """What was written by each kind of query, one after the other in one application."""
    folder = tmp_path_factory.mktemp("speculation")
    topics = {kind: new_topic(PARTITIONS) for kind in KINDS}
    jobs = [f"{kind}={topic}" for kind, topic in topics.items()]
    arguments = [master, broker.bootstrap_servers, folder, TASKS, ROWS, *jobs]
    done = subprocess.run(
        [sys.executable, str(APP), *map(str, arguments)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=_JOB_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return {kind: Written(topic, folder / kind) for kind, topic in topics.items()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_with_a_speculative_copy_writes_once(broker, written, kind):
    servers, (topic, folder) = broker.bootstrap_servers, written[kind]
    attempts = [path.name.split("-") for path in folder.glob("[0-9]*-[0-9]*-*")]
    of_the_slow_one = {(number, host) for task, number, host in attempts if task == "0"}
    assert {number for number, _ in of_the_slow_one} == {"0", "1"}
    assert {host for _, host in of_the_slow_one} == set(HOSTS)
    wait_until_settled(servers, [TopicPartition(topic, n) for n in range(PARTITIONS)])
    assert seen(servers, topic, "read_committed") == Counter(range(ROWS))
    everything = sum(seen(servers, topic, "read_uncommitted").values())
    assert everything > ROWS  # the slow attempt's rows are there, and were aborted
    print(
        f"\n{kind}: {everything - ROWS} rows of {len(attempts) - TASKS} more attempts were aborted"
    )
