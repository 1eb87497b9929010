"""Streams: the same rows as Spark's own connector, by any selection, start, limit and trigger."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import NamedTuple

import pytest
from pyspark.sql import functions as f

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.records import NewRecord
from tests.spark.streaming import (
    NOW,
    OURS,
    THEIRS,
    Place,
    finish,
    is_at,
    numbered,
    put,
    stream,
    wait_until,
)
from tests.spark.writing import produce

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000


@pytest.fixture
def place(spark, broker, tmp_path):
    """Makes places by name."""
    return lambda name: Place(spark, broker.bootstrap_servers, tmp_path / name)


@pytest.fixture(scope="module")
def orders(broker, new_topic):
    """Two partitions of 200 and 100 records, an hour old but for the last 50 of the first."""
    topic = new_topic(partitions=2)
    old_ms = int(time.time() * 1000) - HOUR_MS
    old = [NewRecord(b"old", b"key", old_ms, [(b"h", b"1"), (b"h", None)]) for _ in range(150)]
    produce(broker.bootstrap_servers, topic, 0, old)
    put(broker.bootstrap_servers, topic, 0, numbered(150, 200))
    produce(broker.bootstrap_servers, topic, 1, old[:100])
    return topic


def test_rows_and_offsets_equal_sparks_own_in_limited_batches_and_through_a_restart(
    broker, new_topic, place
):
    topic = new_topic(partitions=3)
    servers = broker.bootstrap_servers
    both = {source: place(source) for source in (OURS, THEIRS)}
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 90,
        "includeHeaders": "true",
    }
    for begin, sizes in ((0, (120, 30, 0)), (1000, (20, 60, 9))):
        for partition, size in enumerate(sizes):
            if size:
                put(servers, topic, partition, numbered(begin, begin + size))
        ends = {
            source: [
                each["sources"][0]["endOffset"]
                for each in at.run(source, **options)
                # Ours logs where the query starts as a batch of its own.
                if each["batchId"] or source == THEIRS
            ]
            for source, at in both.items()
        }
        # Ours may have an empty batch more, where a text was logged with other spaces.
        assert ordered(ends[OURS]) == ordered(ends[THEIRS])
    assert both[OURS].rows() == both[THEIRS].rows()
    assert len(both[OURS].rows()) == 239


class Counted(NamedTuple):
    which: str
    partition: int
    first: int
    count: int


def ordered(ends):
    """The offsets of batches, each once."""
    return list(dict.fromkeys(json.dumps(json.loads(end), sort_keys=True) for end in ends))


def test_every_start_is_where_batch_reads_start_too(spark, broker, orders, place, new_name):
    """One query of as many sources: unions, and the same topic several times, work as well."""
    group = new_name("group")
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        cluster.set_consumer_offsets(
            group, {TopicPartition(orders, 0): 198, TopicPartition(orders, 1): 97}
        )
    starts = {
        "earliest": {"startingOffsets": "earliest"},
        "latest": {},
        "json": {"startingOffsets": json.dumps({orders: {"0": 190, "1": -1}})},
        "minutes": {"startingOffsets": "-10m"},
        "distance": {"startingOffsets": "latest-7"},
        "group": {"startingOffsets": "committed", "kafka.group.id": group},
        "time": {
            "startingTimestamp": int(time.time() * 1000) - HOUR_MS // 2,
            "startingOffsetsByTimestampStrategy": "latest",
        },
    }
    frames = [
        stream(spark, OURS, broker.bootstrap_servers, subscribe=orders, **options)
        .where(f.lit(name) == name)
        .withColumn("which", f.lit(name))
        for name, options in starts.items()
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame)
    here = place("union")
    finish(here.write(union, NOW))
    counts = {(row.which, row.partition): row for row in _counted(here.rows())}
    first = {at: row.first for at, row in counts.items()}
    assert first == {
        ("earliest", 0): 0,
        ("earliest", 1): 0,
        ("json", 0): 190,
        ("minutes", 0): 150,
        ("distance", 0): 193,
        ("distance", 1): 93,
        ("group", 0): 198,
        ("group", 1): 97,
        ("time", 0): 150,
    }
    ends = (200, 100)
    assert all(row.count == ends[row.partition] - row.first for row in counts.values())
    latest = f'"{orders}":{{"0":200,"1":100}}'
    for file in (here.checkpoint / "offsets").glob("[0-9]*"):
        assert latest in file.read_text().replace(" ", "").splitlines()[3]


def _counted(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row.which, row.partition), []).append(row.offset)
    return [Counted(*at, min(found), len(found)) for at, found in groups.items()]


def test_limits_size_batches_and_their_tasks(spark, broker, orders, place):
    servers = broker.bootstrap_servers
    limits = [
        {"maxOffsetsPerTrigger": 100},
        {"maxBytesPerTrigger": 2000},
        {"minPartitions": 6, "subscribePattern": f"^{orders}$"},
        {"maxRecordsPerPartition": 90, "assign": json.dumps({orders: [0]})},
    ]
    frames = [
        stream(
            spark,
            OURS,
            servers,
            **({"subscribe": orders} if len(each) == 1 else {}),
            startingOffsets="earliest",
            **each,
        )
        for each in limits
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.union(frame)
    sizes = []

    def look(frame, batch):
        sizes.append(frame.rdd.getNumPartitions())
        frame.write.format("noop").mode("append").save()

    at = str(place("limits").checkpoint)
    writer = union.writeStream.foreachBatch(look).option("checkpointLocation", at)
    progress = finish(writer.trigger(availableNow=True).start())
    rows = [[source["numInputRows"] for source in each["sources"]] for each in progress]
    by_source = [[count for count in column if count] for column in zip(*rows, strict=True)]
    assert by_source[0] == [99, 99, 99, 3], "shares are rounded down, as in Spark's own"
    assert sum(by_source[1]) == 300
    assert len(by_source[1]) > 2
    assert by_source[2:] == [[300], [200]]
    # Two of each limited source's partitions, six, and three of at most 90 records.
    assert sizes[1] == 2 + 2 + 6 + 3, "batch 0 is empty"


def test_triggers_and_a_batch_that_waits_for_more(spark, broker, new_topic, place):
    topic = new_topic()
    servers = broker.bootstrap_servers
    put(servers, topic, 0, numbered(0, 10))
    here = place("default")
    running = here.start(
        subscribe=topic,
        startingOffsets="earliest",
        minOffsetsPerTrigger=5,
        maxTriggerDelay="3s",
        commitGroupId=topic,
    )
    try:
        wait_until("the first batch, which never waits", lambda: is_at(running, 10), running)
        put(servers, topic, 0, numbered(10, 13))
        wait_until("what is too little, after its delay", lambda: is_at(running, 13), running)
        full = [each for each in running.recentProgress if each["numInputRows"]]
        planned = [datetime.fromisoformat(each["timestamp"]) for each in full]
        assert (planned[1] - planned[0]).total_seconds() > 1
        put(servers, topic, 0, numbered(13, 20))
        wait_until("enough, at once", lambda: is_at(running, 20), running)
    finally:
        running.stop()
    assert here.values() == numbered(0, 20)
    timed = place("timed").start(
        subscribe=topic, startingOffsets="earliest", trigger={"processingTime": "1 second"}
    )
    # Two queries at once; the second is Trigger.Once, which heeds no limit.
    once = place("once")
    finish(
        once.start(
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=1,
            trigger={"once": True},
        )
    )
    assert once.values() == numbered(0, 20)
    try:
        wait_until("a timed batch", lambda: is_at(timed, 20), timed)
    finally:
        timed.stop()


def test_latest_start_survives_a_restart_before_anything_is_read(broker, new_topic, place):
    topic = new_topic(partitions=2)
    servers = broker.bootstrap_servers
    put(servers, topic, 0, ["before"])
    here = place("latest")
    here.run(subscribe=topic)
    put(servers, topic, 0, ["between"])
    assert here.forget_last_batch() == 0, "as killed between the log of batch 0 and its commit"
    here.run(subscribe=topic)
    put(servers, topic, 1, ["after"])
    here.run(subscribe=topic)
    assert here.values() == ["after", "between"]


def test_transactions_are_read_as_by_sparks_own(broker, new_name, new_topic, place):
    topic = new_topic()
    broker.produce_perf(topic, 500, 100, properties={"transactional.id": new_name("producer")})
    found = []
    for source in (OURS, THEIRS):
        here = place(source)
        here.run(
            source,
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=300,
            **{"kafka.isolation.level": "read_committed"},
        )
        found.append(here.rows())
    assert len(found[0]) == 500
    assert found[0] == found[1]


def test_one_load_serves_two_queries_and_a_join_with_itself(broker, new_topic, place):
    topic = new_topic(partitions=2)
    for partition in range(2):
        put(broker.bootstrap_servers, topic, partition, numbered(0, 20))
    one, other, both = (place(name) for name in ("one", "other", "both"))
    frame = one.frame(subscribe=topic, startingOffsets="earliest")
    left, right = frame.alias("left"), frame.alias("right")
    same = [f.col(f"left.{name}") == f.col(f"right.{name}") for name in ("partition", "offset")]
    joined = left.join(right, same).select("left.topic", "left.partition", "right.offset")
    queries = [one.write(frame, NOW), other.write(frame, NOW), both.write(joined, NOW)]
    for query in queries:
        finish(query)
    written = [(partition, offset) for partition in range(2) for offset in range(20)]
    assert [each.offsets() for each in (one, other, both)] == [written] * 3


def test_end_is_refused_as_by_sparks_own(place, orders):
    with pytest.raises(Exception, match=r"endingOffsets.*a stream has no end"):
        place("end").run(subscribe=orders, endingOffsets="latest")
