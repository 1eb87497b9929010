"""A fake cluster under a stream, and a clock that only sleeping moves."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from pyspark_kafkaproto.cluster import routing
from pyspark_kafkaproto.net import connection, deadline, retry
from pyspark_kafkaproto.spark.stream import commits, reader, tail, taking
from pyspark_kafkaproto.spark.stream.options import parse_stream_options
from pyspark_kafkaproto.spark.stream.reader import KafkaStreamReader
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(
        monkeypatch, retry, deadline, connection, routing, tail, taking, reader, commits
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
def stream(brokers, clock):
    """A stream reader with the given options, as the driver's process has it."""
    readers = []

    def make(**options):
        given = {"kafka.bootstrap.servers": brokers.bootstrap_servers} | {
            name.lower(): text for name, text in options.items()
        }
        if "subscribepattern" not in given and "assign" not in given:
            given.setdefault("subscribe", "orders")
        readers.append(KafkaStreamReader(StructType(), parse_stream_options(given)))
        return readers[-1]

    yield make
    for made in readers:
        made.stop()
