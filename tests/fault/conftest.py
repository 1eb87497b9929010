"""Three real brokers, each of which may be killed, stalled and brought back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.devbroker.settings import Settings
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from tests.topics import make_topic
from tests.waiting import THROUGH_ELECTIONS

NODES = 3
RECORDS = 20_000
PAUSE_S = 0.1
_SHOWN_LINES = 40
NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class InRacks(Settings):
    """Each node stands in a rack of its own: `rack-1`, `rack-2`, …"""

    def server_properties(self, node_id, ports, log_dir):
        text = super().server_properties(node_id, ports, log_dir)
        return f"{text}broker.rack=rack-{node_id}\n"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Whoever reads of a failure wants to know what the nodes did meanwhile."""
    report = yield
    trio = getattr(item, "funcargs", {}).get("trio")
    if report.failed and isinstance(trio, DevBroker):
        for node_id in range(1, NODES + 1):
            lines = trio.log_text(node_id).splitlines()[-_SHOWN_LINES:]
            report.sections.append((f"the last of node {node_id}", "\n".join(lines)))
    return report


@pytest.fixture(scope="session")
def trio() -> Iterator[DevBroker]:
    """The three nodes; every test leaves all of them running."""
    broker = DevBroker(nodes=NODES)  # without a folder of ours: its end waits for nothing
    broker.settings = InRacks(NODES, broker.settings.listeners, {"replica.selector.class": NEAREST})
    with broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(trio) -> Iterator[KafkaCluster]:
    config = {"bootstrap.servers": trio.bootstrap_servers} | THROUGH_ELECTIONS
    with KafkaCluster(config) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def topic(trio, new_name) -> str:
    """A topic on all nodes, each of which leads a partition; RECORDS records of 100 bytes."""
    name = new_name()
    make_replicated(trio, name)
    # Small batches: many answers, so that a fault meets a read in its middle.
    trio.produce_perf(name, RECORDS, 100, properties={"batch.size": "5000", "acks": "all"})
    return name


def make_replicated(trio: DevBroker, name: str, partitions: int = NODES) -> None:
    """Make a topic on all nodes that takes nothing which one node alone has."""
    make_topic(
        trio.bootstrap_servers,
        name,
        partitions,
        replication_factor=NODES,
        configs={"min.insync.replicas": "2"},
    )


@contextmanager
def configs(trio: DevBroker) -> Iterator[Callable[..., ClientConfig]]:
    """Makes configurations with small blocks, so that a read has a middle; properties as keywords.

    A stalled broker is given up soon. Connections end with the context.
    """
    opened = []

    def parse(**properties: object) -> ClientConfig:
        given = {
            "bootstrap.servers": trio.bootstrap_servers,
            "max.partition.fetch.bytes": 20_000,
            "request.timeout.ms": 2000,
        } | {name.replace("_", "."): value for name, value in properties.items()}
        opened.append(ClientConfig.parse(given))
        return opened[-1]

    try:
        yield parse
    finally:
        for config in opened:
            connections_for(config).close()


@pytest.fixture
def new_config(trio) -> Iterator[Callable[..., ClientConfig]]:
    with configs(trio) as parse:
        yield parse


@contextmanager
def killed(trio: DevBroker, node_id: int) -> Iterator[None]:
    """A node ends as by a power cut, and is back at the end."""
    trio.kill(node_id)
    try:
        yield
    finally:
        trio.restart(node_id)


@contextmanager
def restarted(trio: DevBroker, node_id: int) -> Iterator[None]:
    """A node hands its partitions over, ends and comes back: what an upgrade does."""
    trio.restart(node_id)
    yield


def lead_as_at_first(trio: DevBroker) -> None:
    """Give each node back the partitions that it led when they were made."""
    election = ("--election-type", "preferred", "--all-topic-partitions")
    where = ("--bootstrap-server", trio.bootstrap_servers)
    trio.run_tool("org.apache.kafka.tools.LeaderElectionCommand", *where, *election)


def wait_for_all(trio: DevBroker, topic: str) -> None:
    """Return once `topic` has all nodes in sync again."""
    wait_for_replicas(trio, topic, NODES)


def wait_for_replicas(trio: DevBroker, topic: str, count: int) -> None:
    """Return once every partition of `topic` has `count` replicas in sync, as all nodes know.

    A node that has just gone on believes for a moment that it leads what it led, with all nodes in
    sync; whoever reads there finds what it knew before. So each node is asked, and they must agree.
    """
    deadline = Deadline.after(120)
    while not _agree(trio, topic, count):
        deadline.check(f"waiting for the replicas of {topic}")
        time.sleep(PAUSE_S)


def _agree(trio: DevBroker, topic: str, count: int) -> bool:
    seen = [_leaders_and_replicas(server, topic) for server in trio.bootstrap_servers.split(",")]
    return seen[1:] == seen[:-1] and all(isr >= count for *_, isr in seen[0])


def _leaders_and_replicas(server: str, topic: str) -> list[tuple[int, int, int]]:
    """What the node at `server` knows of each partition: leader, its epoch, replicas in sync.

    One partition without any where a node has just come up and not heard of the topic.
    """
    try:
        with KafkaCluster({"bootstrap.servers": server}) as node:
            partitions = node.describe({topic}).topic(topic).partitions
    except BrokerError:
        return [(-1, -1, 0)]
    return [
        (partition.leader_id, partition.leader_epoch, len(partition.isr))
        for _, partition in sorted(partitions.items())
    ]
