"""Every read option, alone and combined: Spark's own connector gives the same rows, or fails too.

And each difference that docs/migrating.md names, shown.
"""

from __future__ import annotations

import json
import re

import pytest

from pyspark_kafkaproto.records import NewRecord
from tests.spark.rival import condition_of, load
from tests.spark.writing import produce

pytestmark = pytest.mark.spark

FIRST_MS = 1_700_000_000_000
# Spark's own connector tries three times a second what cannot work.
ONCE = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 10}


@pytest.fixture(scope="module")
def events(broker, new_topic):
    """60 records a second apart in partition 0, 20 in partition 1, none in partition 2."""
    topic = new_topic(partitions=3)
    for partition, count in ((0, 60), (1, 20)):
        records = [
            NewRecord(b"value %d" % at, b"key", FIRST_MS + 1000 * at, [(b"h", b"%d" % at)])
            for at in range(count)
        ]
        produce(broker.bootstrap_servers, topic, partition, records)
    return topic


def of(**numbers: int) -> dict[str, object]:
    """`{topic: {partition: number}}`; the topic's name is filled in by `filled`."""
    return {"TOPIC": {name.removeprefix("p"): number for name, number in numbers.items()}}


ALL, FIRST = {"subscribe": "TOPIC"}, {"assign": {"TOPIC": [0]}}
LATE = {"startingOffsetsByTimestampStrategy": "latest"}


def filled(options, topic):
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (ONCE | options).items()
    }
    return {name: text.replace("TOPIC", topic) for name, text in texts.items()}


def read(spark, broker, source, topic, options):
    """All rows, sorted, and the number of input partitions."""
    frame = load(spark, source, broker.bootstrap_servers, **filled(options, topic))
    found = sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))
    return found, frame.rdd.getNumPartitions()


# options, how many rows
SAME = {
    "all": (ALL, 80),
    "pattern": ({"subscribePattern": "^TOPIC$"}, 80),
    "assign, one twice": ({"assign": {"TOPIC": [0, 1, 0]}}, 80),
    "assign nothing": ({"assign": {}}, 0),
    "headers": (ALL | {"includeHeaders": "true"}, 80),
    "start": (ALL | {"startingOffsets": of(p0=50, p1=-2, p2=0)}, 30),
    "end": (ALL | {"endingOffsets": of(p0=5, p1=-1, p2=0)}, 25),
    "start and end": (FIRST | {"startingOffsets": of(p0=5), "endingOffsets": of(p0=9)}, 4),
    "start at end": (FIRST | {"startingOffsets": of(p0=60)}, 0),
    "timestamp": (FIRST | {"startingTimestamp": FIRST_MS + 5001}, 54),
    "timestamp 0": (ALL | {"startingTimestamp": 0} | LATE, 80),
    "timestamp, latest": (ALL | {"startingTimestamp": FIRST_MS + 15_000} | LATE, 50),
    "ending timestamp": (ALL | {"endingTimestamp": FIRST_MS + 5000}, 10),
    "ending timestamp, none so late": (ALL | {"endingTimestamp": FIRST_MS + 50_000}, 70),
    "both timestamps": (
        FIRST | {"startingTimestamp": FIRST_MS + 5000, "endingTimestamp": FIRST_MS + 9000},
        4,
    ),
    "by timestamp": (
        ALL | LATE | {"startingOffsetsByTimestamp": of(p0=FIRST_MS, p1=FIRST_MS + 19_000, p2=0)},
        61,
    ),
    "ending by timestamp": (
        ALL | {"endingOffsetsByTimestamp": of(p0=FIRST_MS + 7000, p1=2**60, p2=0)},
        27,
    ),
    "timestamp before offsets": (
        FIRST | {"startingTimestamp": FIRST_MS + 5000, "startingOffsets": "latest"},
        55,
    ),
    "timestamp before by timestamp": (
        FIRST | {"startingTimestamp": FIRST_MS + 5000, "startingOffsetsByTimestamp": "?"},
        55,
    ),
    "by timestamp before offsets": (
        FIRST | {"endingOffsetsByTimestamp": of(p0=FIRST_MS + 5000), "endingOffsets": "?"},
        5,
    ),
    "offset and timestamp": (
        FIRST | {"startingOffsets": of(p0=3), "endingTimestamp": FIRST_MS + 9000},
        6,
    ),
    "at least fewer partitions": (ALL | {"minPartitions": 2}, 80),
    "at least 5 of one": (FIRST | {"minPartitions": 5}, 60),
    "at least 9": ({"assign": {"TOPIC": [0, 1]}, "minPartitions": 9}, 80),
    "by records, then at least": (
        {"assign": {"TOPIC": [0, 1]}, "maxRecordsPerPartition": 7, "minPartitions": 20},
        80,
    ),
    "split with a start and an end": (
        FIRST
        | {"startingOffsets": of(p0=3), "endingTimestamp": FIRST_MS + 50_000, "minPartitions": 4},
        47,
    ),
    "no loss": (ALL | {"failOnDataLoss": "FALSE"}, 80),
    "group": (FIRST | {"kafka.group.id": "TOPIC", "groupIdPrefix": "x"}, 60),
    "stream options": (FIRST | {"maxOffsetsPerTrigger": "5"}, 60),
    "client properties": (
        FIRST
        | {
            "kafka.fetch.max.bytes": 1000,
            "kafka.max.partition.fetch.bytes": 1000,
            "kafka.client.id": "me",
            "kafka.client.rack": "r",
            "kafka.check.crcs": "false",
            "kafka.isolation.level": "read_committed",
            "kafka.fetch.min.bytes": 1,
            "kafka.request.timeout.ms": 20000,
            "kafka.retry.backoff.ms": 50,
            "kafkaConsumer.pollTimeoutMs": 30000,
        },
        60,
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_rows_and_input_partitions_are_those_of_sparks_own(spark, broker, events, case):
    options, count = SAME[case]
    theirs, their_partitions = read(spark, broker, "kafka", events, options)
    ours, our_partitions = read(spark, broker, "kafkaproto", events, options)
    assert ours == theirs
    assert len(ours) == count
    # Spark makes one input partition of an empty plan of a Python source.
    assert our_partitions == (their_partitions or 1)


# options, the option that our text names
FAILING = {
    "no selection": ({}, "subscribe"),
    "two selections": (ALL | FIRST, "subscribe"),
    "no topic": ({"subscribe": " , "}, "subscribe"),
    "empty pattern": ({"subscribePattern": " "}, "subscribePattern"),
    "assign without JSON": ({"assign": "TOPIC"}, "assign"),
    "missing topic": ({"subscribe": "TOPIC,TOPIC-x"}, "-x'"),
    "start at latest": (ALL | {"startingOffsets": "latest"}, "startingOffsets"),
    "start at -1": (FIRST | {"startingOffsets": of(p0=-1)}, "startingOffsets"),
    "end at earliest": (ALL | {"endingOffsets": "earliest"}, "endingOffsets"),
    "end at -2": (FIRST | {"endingOffsets": of(p0=-2)}, "endingOffsets"),
    "offsets of some partitions": (ALL | {"startingOffsets": of(p0=1)}, "startingOffsets"),
    "times of some partitions": (
        ALL | {"startingOffsetsByTimestamp": of(p0=1)},
        "startingOffsetsByTimestamp",
    ),
    "ends of other partitions": (
        ALL | {"startingOffsets": of(p0=1, p1=1, p2=0), "endingOffsets": of(p0=5)},
        "endingOffsets",
    ),
    "start beyond end": (
        FIRST | {"startingOffsets": of(p0=9), "endingOffsets": of(p0=5)},
        "startingOffsets",
    ),
    "times the wrong way round": (
        FIRST | {"startingOffsetsByTimestamp": of(p0=9), "endingOffsetsByTimestamp": of(p0=5)},
        "startingOffsetsByTimestamp",
    ),
    "one time beyond the other": (
        FIRST | {"startingTimestamp": FIRST_MS + 9000, "endingTimestamp": FIRST_MS + 5000},
        "startingTimestamp",
    ),
    "start beyond the log": (FIRST | {"startingOffsets": of(p0=99)}, "startingOffsets"),
    "end beyond the log": (
        FIRST | {"endingOffsets": of(p0=99), "kafkaConsumer.pollTimeoutMs": 1000},
        "endingOffsets",
    ),
    "no record so late": (ALL | {"startingTimestamp": FIRST_MS + 15_000}, "startingTimestamp"),
    "unknown strategy": (
        ALL | {"startingOffsetsByTimestampStrategy": "earliest"},
        "startingOffsetsByTimestampStrategy",
    ),
    "timestamp": (ALL | {"startingTimestamp": "yesterday"}, "startingTimestamp"),
    "minPartitions": (ALL | {"minPartitions": 0}, "minPartitions"),
    "maxRecordsPerPartition": (ALL | {"maxRecordsPerPartition": 0}, "maxRecordsPerPartition"),
    "includeHeaders": (ALL | {"includeHeaders": "yes"}, "includeHeaders"),
    "failOnDataLoss": (ALL | {"failOnDataLoss": "1"}, "failOnDataLoss"),
    "isolation level": (ALL | {"kafka.isolation.level": "serial"}, "kafka.isolation.level"),
    **{
        name: (ALL | {f"kafka.{name}": "x"}, f"kafka.{name}")
        for name in (
            *("auto.offset.reset", "key.deserializer", "value.deserializer"),
            *("enable.auto.commit", "interceptor.classes"),
        )
    },
}
# The cases where Spark's own connector names a condition.
WITH_CONDITION = {
    *("offsets of some partitions", "times of some partitions"),
    *("ends of other partitions", "start beyond end", "times the wrong way round"),
    *("one time beyond the other", "start beyond the log"),
    "end beyond the log",
}


@pytest.mark.parametrize("case", FAILING)
def test_what_sparks_own_refuses_is_refused_with_its_condition(spark, broker, events, case):
    options, named = FAILING[case]
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - of every kind, from the JVM
        read(spark, broker, "kafka", events, options)
    with pytest.raises(Exception, match=rf"pyspark_kafkaproto\.errors.*{re.escape(named)}") as ours:
        read(spark, broker, "kafkaproto", events, options)
    condition = condition_of(theirs.value)
    assert not condition or f"[{condition}]" in str(ours.value)
    assert bool(condition) == (case in WITH_CONDITION)
