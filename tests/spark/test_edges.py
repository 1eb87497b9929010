"""Records at the edges of what Kafka holds: the same rows as Spark's own connector."""

from __future__ import annotations

import json
import tempfile
import time

import pytest
from pyspark.sql import functions as sf

from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.spark.rival import condition_of, load
from tests.spark.writing import produce, produce_batches

pytestmark = pytest.mark.spark

MIB = 1 << 20
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
LAST_SECOND_OF_9999_MS = 253_402_300_799_000
COMPACTION_S = 90


def now_ms() -> int:
    """A segment's age is told by its records' timestamps."""
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def compacted(broker, new_topic):
    """A topic of one key whose old values are to go, once the broker's cleaner comes by."""
    topic = new_topic(
        configs={
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.001",
            "segment.ms": "100",
            "max.compaction.lag.ms": "100",
        }
    )
    for number in range(5):
        produce(
            broker.bootstrap_servers,
            topic,
            0,
            [
                NewRecord(b"%d" % (number * 10 + at), b"k%d" % (at % 3), now_ms())
                for at in range(10)
            ],
        )
    return topic


@pytest.fixture(scope="module")
def both(spark, broker):
    def frames(**options):
        return [
            load(spark, source, broker.bootstrap_servers, **options)
            for source in ("kafka", "kafkaproto")
        ]

    return frames


@pytest.mark.usefixtures("compacted")
def test_times_headers_and_nulls_at_the_edges(both, broker, new_topic):
    topic = new_topic(configs=ANY_TIME)
    many = [(b"h%d" % (at % 7), b"%d" % at if at % 3 else None) for at in range(1000)]
    for batch in (
        [NewRecord(b"no time", b"k", -1), NewRecord(b"1970", b"k", 0)],
        [
            NewRecord(b"far", b"k", LAST_SECOND_OF_9999_MS),
            NewRecord(b"now", b"k", 1_790_000_000_001),
        ],
        [NewRecord(None, None, 1), NewRecord(b"", b"", 1), NewRecord(b"headers", b"k", 1, many)],
        [NewRecord(b"25 days later", b"k", 1), NewRecord(b"x", b"k", 1 + 40 * 86_400_000)],
    ):
        produce(broker.bootstrap_servers, topic, 0, batch)
    theirs, ours = both(subscribe=topic, includeHeaders="true")
    found = ours.orderBy("offset").collect()
    assert found == theirs.orderBy("offset").collect()
    assert [row.timestamp.year for row in found[:3]] == [1969, 1970, 9999]
    assert len(found[6].headers) == 1000
    late = {"startingTimestamp": LAST_SECOND_OF_9999_MS}
    theirs, ours = both(subscribe=topic, includeHeaders="true", **late)
    assert ours.orderBy("offset").collect() == theirs.orderBy("offset").collect() == found[2:]


def test_a_time_that_spark_cannot_hold_is_named(both, broker, new_topic):
    topic = new_topic(configs=ANY_TIME)
    produce(broker.bootstrap_servers, topic, 0, [NewRecord(b"x", b"k", 2**60)])
    for frame, text in zip(both(subscribe=topic), (topic, f"{topic}-0"), strict=True):
        with pytest.raises(Exception, match=text):
            frame.collect()


def test_values_of_50_mb(both, broker, new_topic):
    topic = new_topic(partitions=2, configs={"max.message.bytes": str(64 * MIB)})
    for partition in (0, 1):
        value = bytes([65 + partition]) * (50 * MIB)
        produce(broker.bootstrap_servers, topic, partition, [NewRecord(value, b"k")])
        produce(broker.bootstrap_servers, topic, partition, [NewRecord(b"small", b"k")])
    theirs, ours = (
        frame.select("partition", "offset", sf.length("value"), sf.md5("value"))
        for frame in both(subscribe=topic, maxPartitions=1)
    )
    found = sorted(map(tuple, ours.collect()))
    assert found == sorted(map(tuple, theirs.collect()))
    assert [row[2] for row in found] == [50 * MIB, 5, 50 * MIB, 5]


def test_partitions_that_hold_nothing_among_others(both, broker, new_topic):
    topic = new_topic(partitions=12)
    produce(broker.bootstrap_servers, topic, 7, [NewRecord(b"only", b"k")])
    for options in ({}, {"minPartitions": 14}, {"startingOffsets": "earliest"}):
        theirs, ours = both(subscribe=topic, **options)
        assert ours.collect() == theirs.collect()
        assert [row.partition for row in ours.collect()] == [7]


@pytest.mark.long
def test_a_thousand_partitions_are_few_tasks(spark, broker, new_topic):
    """Against what was written: Spark's own connector takes minutes for so many."""
    topic = new_topic(partitions=1000)
    for first in range(0, 5000, 1000):
        numbers = range(first, first + 1000)
        batches = {at - first: encode_batch([NewRecord(b"%d" % at, b"%d" % at)]) for at in numbers}
        produce_batches(broker.bootstrap_servers, topic, batches)
    frame = load(spark, "kafkaproto", broker.bootstrap_servers, subscribe=topic, maxPartitions=4)
    assert frame.rdd.getNumPartitions() == 4
    found = frame.select("key", "value", "partition").collect()
    assert sorted(int(row.value) for row in found) == list(range(5000))
    assert all(row.key == row.value for row in found)
    assert len({row.partition for row in found}) == 1000


def test_records_that_were_deleted_are_a_loss_or_left_out(both, broker, new_topic, kafka_tool):
    topic = new_topic()
    produce(broker.bootstrap_servers, topic, 0, [NewRecord(b"%d" % at) for at in range(20)])
    gone = {"partitions": [{"topic": topic, "partition": 0, "offset": 15}], "version": 1}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(gone, file)
        file.flush()
        kafka_tool("DeleteRecordsCommand", "--offset-json-file", file.name)
    starts = {"startingOffsets": json.dumps({topic: {"0": 3}})}
    for frame in both(subscribe=topic, **starts):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - of every kind, from the JVM
            frame.collect()
        assert "KAFKA_DATA_LOSS" in f"{caught.value} {condition_of(caught.value)}"
    for options in ({}, starts | {"failOnDataLoss": "false"}):
        theirs, ours = both(subscribe=topic, **options)
        assert ours.orderBy("offset").collect() == theirs.orderBy("offset").collect()
        assert [row.offset for row in ours.collect()] == [15, 16, 17, 18, 19]


def test_a_compacted_topic_has_holes(both, broker, compacted):
    """Last, so that the cleaner had the time of the others."""
    deadline = time.monotonic() + COMPACTION_S
    while True:
        # A segment is closed by the next record only, and the open one is never compacted.
        produce(broker.bootstrap_servers, compacted, 0, [NewRecord(b"last", b"k9", now_ms())])
        theirs, ours = both(subscribe=compacted)
        found = [(row.offset, row.key) for row in ours.orderBy("offset").collect()]
        if len(found) < 50:
            break
        assert time.monotonic() < deadline, "the broker did not compact"
        time.sleep(1)
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets))
    inside = json.dumps({compacted: {"0": 3}})
    ends = json.dumps({compacted: {"0": 45}})
    theirs, ours = both(subscribe=compacted, startingOffsets=inside, endingOffsets=ends)
    assert ours.orderBy("offset").collect() == theirs.orderBy("offset").collect()
    for options in ({"minPartitions": 5}, {"startingOffsets": inside}):
        theirs, ours = both(subscribe=compacted, endingOffsets=ends, **options)
        assert ours.orderBy("offset").collect() == theirs.orderBy("offset").collect()
