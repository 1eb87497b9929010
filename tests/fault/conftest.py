"""Three real brokers, each of which may be killed, stalled and brought back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.net import Deadline

NODES = 3
RECORDS = 20_000
_PAUSE_S = 0.1


@pytest.fixture(scope="session")
def trio(tmp_path_factory) -> Iterator[DevBroker]:
    """The three nodes; every test leaves all of them running."""
    with DevBroker(tmp_path_factory.mktemp("trio"), nodes=NODES) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(trio) -> Iterator[KafkaCluster]:
    with KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def topic(trio, new_name) -> str:
    """A topic on all nodes, each of which leads a partition; RECORDS records of 100 bytes."""
    name = new_name()
    in_sync = {"min.insync.replicas": "2"}
    trio.create_topic(name, NODES, replication_factor=NODES, configs=in_sync)
    # Small batches: many answers, so that a fault meets a read in its middle.
    trio.produce_perf(name, RECORDS, 100, properties={"batch.size": "5000", "acks": "all"})
    return name


@contextmanager
def killed(trio: DevBroker, node_id: int) -> Iterator[None]:
    """A node ends as by a power cut, and is back at the end."""
    trio.kill(node_id)
    try:
        yield
    finally:
        trio.restart(node_id)


@contextmanager
def stalled(trio: DevBroker, node_id: int) -> Iterator[None]:
    """A node says nothing more, its connections open, and goes on at the end."""
    process = trio._node(node_id).process
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def wait_for_all(kafka: KafkaCluster, topic: str) -> None:
    """Return once every replica of `topic` is in sync again."""
    deadline = Deadline.after(60)
    while any(
        len(partition.isr) < NODES
        for partition in kafka.describe({topic}).topic(topic).partitions.values()
    ):
        deadline.check(f"waiting for the replicas of {topic}")
        time.sleep(_PAUSE_S)
