"""A member's fetch sessions (KIP-227) with real brokers, of the oldest line and of the newest."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto import Consumer, KafkaCluster, TopicPartition
from pyspark_kafkaproto.client.group.sessions import FetchSession
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION, DevBroker
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net.ports import free_ports
from tests.broker.filling import fill
from tests.polled import polled_rows

pytestmark = pytest.mark.broker

PARTITIONS = 300
TURNS = 20


@pytest.fixture(params=["3.9.1", DEFAULT_VERSION])
def servers(request):
    with DevBroker(version=request.param) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def named(monkeypatch):
    """(epoch, how many partitions) of each Fetch."""
    seen = []
    next_scope = FetchSession.next_scope

    def noted(session, terms, *, is_by_id):
        made = next_scope(session, terms, is_by_id=is_by_id)
        seen.append((made.session_epoch, len(made.terms)))
        return made

    monkeypatch.setattr(FetchSession, "next_scope", noted)
    return seen


def test_each_row_comes_once_and_a_fetch_names_those_that_moved(servers, named):
    partitions = [TopicPartition("many", number) for number in range(PARTITIONS)]
    config = {"group.id": "g", "auto.offset.reset": "earliest", "fetch.max.wait.ms": 50}
    with KafkaCluster(servers) as kafka:
        kafka.create_topics([NewTopic("many", PARTITIONS, 1)])
        fill(kafka, dict.fromkeys(partitions, 2))
        with Consumer(servers | config, {"many"}, columns=["partition", "offset"]) as consumer:
            expected = [(item.partition, at) for item in partitions for at in range(2)]
            assert sorted(polled_rows(consumer, 2 * PARTITIONS)) == expected
            quiet = Deadline.after(30)
            while named[-1][1]:
                quiet.check("a Fetch that names nothing")
                consumer.poll(0.1)
            since = len(named)
            for turn in range(TURNS):
                some = partitions[turn::TURNS]
                fill(kafka, dict.fromkeys(some, 1))
                expected = [(item.partition, 2) for item in some]
                assert sorted(polled_rows(consumer, len(some))) == expected
    assert all(epoch > 0 for epoch, _ in named[since:])
    assert max(count for _, count in named[since:]) <= PARTITIONS // TURNS


MEMBERS = 3
KEPT = "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions,*"


@pytest.mark.parametrize("version", ["3.9.1", DEFAULT_VERSION])
def test_brokers_keep_no_session_of_members_that_have_closed(version, monkeypatch):
    """Though each has a Fetch under way, and does not wait for an answer."""
    (port,) = free_ports(1)
    server = {"port": port, "rmi.port": port, "host": "127.0.0.1"}
    server |= {"authenticate": "false", "ssl": "false"}
    options = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in server.items()]
    heap = os.environ.get("KAFKA_HEAP_OPTS", "-Xmx512m")
    with ExitStack() as held:
        with monkeypatch.context() as patched:
            patched.setenv("KAFKA_HEAP_OPTS", " ".join([heap, *options]))
            broker = held.enter_context(DevBroker(version=version))
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        with KafkaCluster(servers) as kafka:
            kafka.create_topics([NewTopic("t", 8, 1)])
        members = [
            held.enter_context(Consumer(servers | {"group.id": f"g{number}"}, {"t"}))
            for number in range(MEMBERS)
        ]
        quiet = Deadline.after(60)
        for member in members:
            while not any(session._epoch > 1 for session in member._sessions._of.values()):
                quiet.check("a session of each")
                member.poll(0.1)
        assert kept_by(broker, port) == MEMBERS
        for member in members:
            member.close()
        while kept_by(broker, port):  # it hears of it when it has answered the Fetch before
            quiet.check("the end of all sessions")


def kept_by(broker, port):
    """How many sessions it says it keeps."""
    told = broker.run_tool(
        "org.apache.kafka.tools.JmxTool",
        *("--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"),
        *("--object-name", KEPT, "--one-time", "true"),
    )
    return int(told.split()[-1].rpartition(",")[2])
