from __future__ import annotations

import gc
from collections import deque

import pytest

from pyspark_kafkaproto.client import OffsetRange, Producer, ReadTask
from pyspark_kafkaproto.client.reading import coming, fetch, loss
from pyspark_kafkaproto.client.writing import (
    coalescing,
    compressing,
    gathering,
    identity,
    sending,
    targets,
)
from pyspark_kafkaproto.cluster import Leader, TopicPartition, routing
from pyspark_kafkaproto.net import (
    ClientConfig,
    Endpoint,
    connection,
    deadline,
    incoming,
    pool,
    retry,
)
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster


@pytest.fixture
def clock(monkeypatch):
    """Time in `net` and `client`, standing still but for sleeps."""
    return stop_clock(
        monkeypatch,
        retry,
        deadline,
        connection,
        incoming,
        routing,
        coming,
        fetch,
        loss,
        sending,
        targets,
    )


@pytest.fixture
def no_collector():
    """No garbage is collected, as in a process that has little to do."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def own_connections(monkeypatch):
    """Connections of this process that end with the test."""
    pools = {}
    monkeypatch.setattr(pool, "_pools", pools)
    yield
    for kept in pools.values():
        kept.close()


@pytest.fixture(autouse=True)
def own_producer_ids(monkeypatch):
    """Producer ids kept for the next producer that end with the test."""
    monkeypatch.setattr(identity, "_kept", deque(maxlen=identity._kept.maxlen))


@pytest.fixture(autouse=True)
def looked_at_at_once(monkeypatch):
    """Nothing waits for what may follow, which would go by how fast a test runs.

    Tests of that say so.
    """
    for module in (gathering, coalescing):
        monkeypatch.setattr(module, "_MOST_S", 0.0)
    monkeypatch.setattr(sending, "_MOMENT_S", 0.0)


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "pieces"])
def answers_in_pieces(request, monkeypatch):
    """Answers as they are, and again so that small ones, too, are read while they come."""
    if request.param:
        piece_bytes = getattr(request.module, "PIECE_BYTES", 200)
        monkeypatch.setattr(fetch, "PIECE_BYTES", piece_bytes)
        monkeypatch.setattr(fetch, "_PIECE_ALONE_BYTES", piece_bytes)


@pytest.fixture
def brokers():
    """Two fake nodes; the first leads both partitions of `orders` and those of `many`."""
    with FakeCluster({"orders": 2, "many": 250}, nodes=2) as fake:
        yield fake


@pytest.fixture
def config(brokers):
    """Reads a client configuration for the fake nodes; properties as keywords with `_`."""

    def parse(**properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        return ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers} | given)

    return parse


@pytest.fixture
def task(brokers):
    """Plans what one reader reads: (partition, start, stop) each, leaders as they are now."""

    def plan(*ranges, topic="orders", by_id=True, with_leaders=True):
        known = brokers.topics[topic]
        partitions = {number for number, _, _ in ranges}
        leaders = {
            TopicPartition(topic, number): Leader(
                known.leaders[number],
                Endpoint.parse(brokers.address(known.leaders[number])),
                known.epochs[number],
            )
            for number in partitions
        }
        return ReadTask(
            tuple(OffsetRange(topic, *item) for item in ranges),
            leaders if with_leaders else {},
            {topic: known.topic_id if by_id else None},
        )

    return plan


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "threads"])
def compressed_in_threads(request, monkeypatch):
    """Batches as they are, and again compressed, each of them, in threads."""
    monkeypatch.setattr(compressing, "_WORTH_A_THREAD_BYTES", 0)
    monkeypatch.setattr(compressing, "compressing_threads", lambda _: 2)
    return {"compression.type": "lz4"} if request.param else {}


@pytest.fixture
def producer(brokers, opinions_at_once, request):
    """Makes a producer for the fake nodes that ends with the test; properties as keywords."""
    made = []
    wanted = "compressed_in_threads" in request.fixturenames
    codec = request.getfixturevalue("compressed_in_threads") if wanted else {}

    def make(topic="orders", dead_letter_topic=None, timestamp_column=None, **properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        # Where the clock stands still, waits cost nothing and tries do.
        rests_ms = (50, 200) if "clock" in request.fixturenames else (1, 5)
        short = dict(zip(("retry.backoff.ms", "retry.backoff.max.ms"), rests_ms, strict=True))
        made.append(
            Producer(
                {"bootstrap.servers": brokers.bootstrap_servers} | short | codec | given,
                topic=topic,
                dead_letter_topic=dead_letter_topic,
                timestamp_column=timestamp_column,
            )
        )
        return made[-1]

    yield make
    for each in made:
        each.abandon()
