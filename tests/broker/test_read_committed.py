"""read_committed beside Java's consumer: the same rows of histories by Java's own producers."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.client.committed import commit_ranges, plan_ranges
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.net import ClientConfig, connections_for
from tests.differential.transactions import java_transactions
from tests.waiting import until

pytestmark = pytest.mark.broker

PARTITIONS = 2
STEPS = 120
LEVELS = ("read_committed", "read_uncommitted")


@pytest.fixture(scope="module")
def java(broker):
    with java_transactions(broker) as process:
        yield process


@pytest.fixture(scope="module", params=[1, 2], ids="seed {}".format)
def history(request, java, new_topic):
    """A topic, and the producers that left their transactions open."""
    topic = new_topic(PARTITIONS)
    open_ = java.write_history(topic, PARTITIONS, STEPS, request.param)
    yield topic, open_
    for producer in open_:
        java.do("abort", producer)


@pytest.fixture
def config(broker):
    """Reads a client configuration for the broker; connections end with the test."""
    opened = []

    def parse(level, block_bytes=1 << 20):
        properties = {
            "bootstrap.servers": broker.bootstrap_servers,
            "isolation.level": level,
            "max.partition.fetch.bytes": block_bytes,
        }
        opened.append(ClientConfig.parse(properties))
        return opened[-1]

    yield parse
    for each in opened:
        connections_for(each).close()


def read(config, topic, partition, start=None, stop=None):
    """(offset, value) of all rows of a range."""
    with KafkaCluster(config) as kafka:
        only = TopicPartition(topic, partition)
        leaders = kafka.find_leaders({only})
        topic_id = kafka.describe({topic}).topic(topic).topic_id
    task = ReadTask((OffsetRange(*only, start, stop),), leaders, {topic: topic_id})
    batches = read_batches(task, config, ReadSettings(), schema_for(["offset", "value"]))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("block_bytes", [1, 500, 1 << 20])
@pytest.mark.parametrize("level", LEVELS)
def test_the_rows_of_java_s_consumer(java, config, history, level, block_bytes):
    """In blocks of one batch too: transactions span them, and their markers lie far behind."""
    topic, _ = history
    for partition in range(PARTITIONS):
        expected = java.read(level, topic, partition)
        assert len(expected) > 40
        assert read(config(level, block_bytes), topic, partition) == expected


def test_the_histories_tell_the_levels_apart(java, history):
    """Some of it is aborted, and some of it is open: a test that cannot fail shows nothing."""
    topic, open_ = history
    assert open_
    committed, all_ = ([java.read(level, topic, 0), java.read(level, topic, 1)] for level in LEVELS)
    ends = [rows[-1].offset for rows in committed]
    aborted = [
        row
        for rows, every, end in zip(committed, all_, ends, strict=True)
        for row in every
        if row.offset < end and row not in rows
    ]
    assert len(aborted) > 40
    assert any(every[-1].offset > end for every, end in zip(all_, ends, strict=True))


def test_ranges_that_begin_and_end_inside_transactions(java, config, history):
    topic, _ = history
    expected = java.read("read_committed", topic, 0)
    end = expected[-1].offset + 1
    small = config("read_committed", 500)
    for start in range(0, end, 7):
        for stop in {start + 1, min(start + 40, end), end}:
            inside = [row for row in expected if start <= row.offset < stop]
            assert read(small, topic, 0, start, stop) == inside, (start, stop)


def test_an_open_transaction_ends_the_range_until_it_ends_itself(java, config, new_topic):
    """The last stable offset: what others committed behind it is not read before."""
    topic = new_topic()
    first, second = f"{topic}-first", f"{topic}-second"
    for producer, mark in ((first, "open"), (second, "behind")):
        java.do("begin", producer)
        java.do("send", producer, topic, 0, 3, mark)
    java.do("commit", second)
    committed, uncommitted = map(config, LEVELS)
    assert read(committed, topic, 0) == java.read("read_committed", topic, 0) == []
    assert len(read(uncommitted, topic, 0)) == 6
    java.do("abort", first)
    rows = read(committed, topic, 0)
    assert [value for _, value in rows] == [b"behind-0", b"behind-1", b"behind-2"]
    # The same producer, which aborted, commits.
    java.do("begin", first)
    java.do("send", first, topic, 0, 2, "again")
    java.do("commit", first)
    rows = read(committed, topic, 0)
    assert [value for _, value in rows[3:]] == [b"again-0", b"again-1"]
    assert rows == java.read("read_committed", topic, 0)


def test_a_group_that_has_read_behind_an_open_transaction_goes_on_once_it_ends(
    java, config, new_topic
):
    """The runs before were read_uncommitted: neither is anything gone, nor read again."""
    topic = new_topic()
    java.do("begin", topic)
    java.do("send", topic, topic, 0, 3, "open")
    committed, uncommitted = map(config, LEVELS)
    with KafkaCluster(uncommitted) as kafka:
        commit_ranges(kafka, topic, plan_ranges(kafka, {topic}, topic))
    with KafkaCluster(committed) as kafka:
        assert plan_ranges(kafka, {topic}, topic) == [OffsetRange(topic, 0, 3, 3)]
        java.do("commit", topic)
        rest = [OffsetRange(topic, 0, 3, 4)]  # nothing but the end of the transaction
        until(lambda: plan_ranges(kafka, {topic}, topic) == rest, 30, "the commit's marker")
