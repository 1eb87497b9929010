"""A fake cluster under a stream, and a clock that only sleeping moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql.types import StructType

from pyspark_kafkaproto.cluster import KafkaCluster, routing
from pyspark_kafkaproto.net import connection, deadline, incoming, retry
from pyspark_kafkaproto.spark.stream import commits, reader, tail, taking
from pyspark_kafkaproto.spark.stream.limited import LimitedStreamReader
from pyspark_kafkaproto.spark.stream.options import parse_stream_options
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(
        monkeypatch, retry, deadline, connection, incoming, routing, tail, taking, reader, commits
    )


@pytest.fixture
def brokers():
    """`orders` holds the offsets 10 to 100 in partition 0 and 0 to 30 in partition 1, at node 1."""
    with FakeCluster({"orders": 2}, nodes=3) as fake:
        fake.logs["orders", 0].start = 10
        fake.logs["orders", 0].stop = 100
        fake.logs["orders", 1].stop = 30
        yield fake


@pytest.fixture
def stream_class():
    """Who answers the engine."""
    return LimitedStreamReader


@pytest.fixture
def stream(brokers, clock, stream_class):
    """A stream reader with the given options, as the driver's process has it."""
    readers = []

    def make(**options):
        given = {"kafka.bootstrap.servers": brokers.bootstrap_servers} | {
            name.lower(): text for name, text in options.items()
        }
        if "subscribepattern" not in given and "assign" not in given:
            given.setdefault("subscribe", "orders")
        readers.append(stream_class(StructType(), parse_stream_options(given)))
        return readers[-1]

    yield make
    for made in readers:
        made.stop()


@pytest.fixture
def group_with_members(group, monkeypatch):
    """The same, while somebody is a member of it."""
    members = (SimpleNamespace(host="/10.0.0.7"),)
    found = {"g": SimpleNamespace(type="classic", members=members)}
    monkeypatch.setattr(KafkaCluster, "describe_groups", lambda self, groups: found)
    return group


@pytest.fixture
def group(monkeypatch):
    """What the stream's group has committed."""
    committed = {}
    found = {"g": SimpleNamespace(type="classic", members=())}

    def commit(self, group, offsets):
        committed.update({item: at.offset for item, at in offsets.items()})

    monkeypatch.setattr(KafkaCluster, "describe_groups", lambda self, groups: found)
    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", lambda *_: dict(committed))
    monkeypatch.setattr(KafkaCluster, "set_consumer_offsets", commit)
    return committed
