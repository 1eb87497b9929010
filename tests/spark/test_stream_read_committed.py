"""Streams of either isolation level beside Spark's own: histories that Java's producers wrote."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from tests.differential.transactions import java_transactions
from tests.spark.streaming import OURS, THEIRS, Place, wait_until

pytestmark = pytest.mark.spark

PARTITIONS = 2
LEVELS = ("read_committed", "read_uncommitted")


@pytest.fixture
def place(spark, broker, tmp_path):
    """Makes places by name."""
    return lambda name: Place(spark, broker.bootstrap_servers, tmp_path / name)


@pytest.fixture(scope="module")
def java(broker):
    with java_transactions(broker) as process:
        yield process


def ends_of(broker, topic, level):
    """Where each partition ends for a reader of this level."""
    config = {"bootstrap.servers": broker.bootstrap_servers, "isolation.level": level}
    with KafkaCluster(config) as cluster:
        partitions = {TopicPartition(topic, number) for number in range(PARTITIONS)}
        found = cluster.get_latest_leader_offsets(partitions)
    return {str(item.partition): offset for item, offset in found.items()}


def options_for(topic, level):
    return {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.isolation.level": level,
        "maxOffsetsPerTrigger": 140,
    }


def last_end(progress, topic):
    return json.loads(progress[-1]["sources"][0]["endOffset"])[topic]


@pytest.mark.parametrize("level", LEVELS)
def test_rows_and_offsets_equal_sparks_own_before_and_after_open_transactions_end(
    broker, new_topic, place, java, level
):
    topic = new_topic(PARTITIONS)
    open_ = java.write_history(topic, PARTITIONS, 120, seed=5)
    assert open_
    both = {source: place(source) for source in (OURS, THEIRS)}
    options = options_for(topic, level)
    counts = []
    for ends_transactions in (False, True):
        if ends_transactions:
            for number, producer in enumerate(sorted(open_)):
                java.do(("commit", "abort")[number % 2], producer)
        ends = ends_of(broker, topic, level)
        for source, at in both.items():
            # The run ends by itself, in front of what is open.
            assert last_end(at.run(source, **options), topic) == ends
        assert both[OURS].rows() == both[THEIRS].rows()
        counts.append(len(both[OURS].rows()))
    assert 0 < counts[0] <= counts[1]
    if level == "read_committed":
        assert counts[0] < counts[1], "nothing was open that was committed"


def test_a_stream_stands_before_an_open_transaction_and_goes_on_when_it_ends(
    broker, new_topic, place, java
):
    topic = new_topic(PARTITIONS)
    for name, how in (("one", "commit"), ("two", "abort")):
        producer = f"{topic}-{name}"
        java.do("begin", producer)
        java.do("send", producer, topic, 0, 10, name)
        java.do(how, producer)
    stands = f"{topic}-open"
    java.do("begin", stands)
    java.do("send", stands, topic, 0, 5, "open")
    stable = ends_of(broker, topic, "read_committed")["0"]
    behind = f"{topic}-behind"
    java.do("begin", behind)
    java.do("send", behind, topic, 0, 7, "behind")
    java.do("send", behind, topic, 1, 3, "beside")
    java.do("commit", behind)

    here = place("running")
    query = here.start(OURS, **options_for(topic, "read_committed"))

    def position():
        done = [each for each in query.recentProgress if each["sources"][0]["endOffset"]]
        return json.loads(done[-1]["sources"][0]["endOffset"])[topic] if done else {}

    try:
        wait_until("all but what is held back", lambda: position().get("1") == 4, query)
        # Not only now: batches of the other partition come and go beside it.
        for count in (5, 6):
            java.do("begin", behind)
            java.do("send", behind, topic, 1, 1, "beside")
            java.do("commit", behind)
            wait_until("one more", lambda now=count: position()["1"] >= 2 * now - 4, query)
            assert position()["0"] == stable
        assert {value.split("-")[0] for value in here.values()} == {"one", "beside"}
        java.do("commit", stands)
        end = ends_of(broker, topic, "read_committed")["0"]
        wait_until("what was held back", lambda: position()["0"] == end, query)
    finally:
        query.stop()
    assert end > stable
    assert len(here.rows()) == 10 + 5 + 7 + 3 + 2
