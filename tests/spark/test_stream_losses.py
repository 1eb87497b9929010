"""Streams while topics change under them: what is found, what is a loss, and what it is called."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster import NewTopic
from tests.spark.streaming import (
    NOW,
    OURS,
    SOON,
    THEIRS,
    Place,
    failure_of,
    is_at,
    numbered,
    put,
    read_to,
    wait_until,
)

pytestmark = pytest.mark.spark

LENIENT = {"failOnDataLoss": "false"}


@pytest.fixture(scope="module")
def cluster(broker):
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as opened:
        yield opened


@pytest.fixture
def place(spark, broker, tmp_path):
    return lambda name: Place(spark, broker.bootstrap_servers, tmp_path / name)


@pytest.fixture
def topic(broker, new_topic):
    """100 records in its one partition."""
    name = new_topic()
    put(broker.bootstrap_servers, name, 0, numbered(0, 100))
    return name


def make_anew(cluster, broker, topic, records):
    """Delete the topic and make it again, with fewer records."""
    cluster.delete_topics({topic})
    wait_until("the topic is gone", lambda: not cluster.describe({topic}).has(topic))
    cluster.create_topics([NewTopic(topic, 1, 1)])
    put(broker.bootstrap_servers, topic, 0, numbered(0, records))


def test_added_partitions_are_read_from_their_first_record(broker, cluster, topic, place):
    here = place("added")
    running = here.start(subscribe=topic, startingOffsets="earliest")
    try:
        wait_until("the first batch", lambda: is_at(running, 100), running)
        cluster.add_partitions({topic: 3})
        put(broker.bootstrap_servers, topic, 2, numbered(100, 130))
        wait_until("what was added", lambda: is_at(running, 130), running)
    finally:
        running.stop()
    assert here.values() == numbered(0, 130)


@pytest.mark.parametrize("source", [OURS, THEIRS])
def test_a_start_beyond_the_log_is_a_loss_as_by_sparks_own(topic, place, source):
    beyond = json.dumps({topic: {"0": 101}})
    failing = place("beyond").start(source, subscribe=topic, startingOffsets=beyond)
    failure = failure_of(failing)
    if source == OURS:
        assert "[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] option 'startingOffsets'" in failure
    else:  # the text of that condition, which a query's failure shows without its name
        assert "offset was changed from 101 to 100" in failure


def test_truncated_log_is_a_loss_or_read_from_what_is_left_as_by_sparks_own(
    broker, cluster, topic, place
):
    """The queries have read 100, then 200 come, of which the first 150 are deleted."""
    both = {source: place(source) for source in (OURS, THEIRS)}
    for source, here in both.items():
        here.run(source, subscribe=topic, startingOffsets="earliest")
    put(broker.bootstrap_servers, topic, 0, numbered(100, 300))
    cluster.delete_records({TopicPartition(topic, 0): 250})
    failing = both[OURS].start(subscribe=topic, trigger={"availableNow": True})
    assert "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE" in failure_of(failing)
    for source, here in both.items():
        here.run(source, subscribe=topic, **LENIENT, **SOON)
        assert here.values() == numbered(0, 100) + numbered(250, 300)


def test_a_limited_stream_does_not_go_through_what_is_gone(broker, cluster, topic, place):
    """As Spark's own does, batch after batch: they count offsets that may be none."""
    batches = {}
    both = {source: place(source) for source in (OURS, THEIRS)}
    for source, here in both.items():
        here.run(source, subscribe=topic, startingOffsets="earliest")
    put(broker.bootstrap_servers, topic, 0, numbered(100, 300))
    cluster.delete_records({TopicPartition(topic, 0): 250})
    for source, here in both.items():
        limited = {"subscribe": topic, "maxOffsetsPerTrigger": 30}
        batches[source] = here.run(source, **limited, **LENIENT, **SOON)
        assert here.values() == numbered(0, 100) + numbered(250, 300)
    assert (len(batches[OURS]), len(batches[THEIRS])) == (2, 7)


def test_topic_made_again_while_the_query_stood_still_is_a_loss_or_as_by_sparks_own(
    broker, cluster, topic, place
):
    both = {source: place(source) for source in (OURS, THEIRS)}
    for source, here in both.items():
        here.run(source, subscribe=topic, startingOffsets="earliest")
    make_anew(cluster, broker, topic, 20)
    failing = both[OURS].start(subscribe=topic)
    assert "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED" in failure_of(failing)
    # Under Trigger.AvailableNow Spark's own would fail by the name of that trigger.
    running = {
        source: here.start(source, subscribe=topic, **LENIENT, **SOON)
        for source, here in both.items()
    }
    try:
        for query in running.values():
            wait_until("where the new topic ends", lambda query=query: is_at(query, 20), query)
        put(broker.bootstrap_servers, topic, 0, numbered(100, 105))
        for query in running.values():
            wait_until("new records", lambda query=query: read_to(query) == 25, query)
    finally:
        for query in running.values():
            query.stop()
    assert both[OURS].values() == both[THEIRS].values() == numbered(0, 105)


def test_topic_that_is_made_again_under_a_running_query_is_a_loss(broker, cluster, topic, place):
    """Spark's own notices only if the new topic is shorter."""
    running = place("under").start(subscribe=topic, startingOffsets="earliest")
    wait_until("the first batch", lambda: is_at(running, 100), running)
    make_anew(cluster, broker, topic, 150)
    assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in failure_of(running)


def test_topic_made_again_between_two_runs_is_a_loss_where_its_id_was_logged(
    broker, cluster, topic, place
):
    """It has grown by then. Without the ids, as by Spark's own, it is read from where it stood."""
    given = {"subscribe": topic, "startingOffsets": "earliest"}
    kept, usual = place("kept"), place("usual")
    kept.run(**given, findLossBetweenRuns=True)
    usual.run(**given)
    make_anew(cluster, broker, topic, 150)
    usual.run(**given)
    assert usual.offsets() == [(0, offset) for offset in range(150)], "100 of them another topic's"
    for trigger in (None, NOW, NOW):  # each time: nothing was logged
        failing = kept.start(**given, trigger=trigger, findLossBetweenRuns=True)
        assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in failure_of(failing)
    for _ in range(2):
        kept.run(**given, findLossBetweenRuns=True, **LENIENT)
        kept.run(**given, findLossBetweenRuns=True)
    assert kept.offsets() == usual.offsets()


def test_deleted_topic_fails_a_query_and_a_lenient_one_goes_on(
    broker, cluster, topic, new_topic, place
):
    other = new_topic()
    pattern = f"^({topic}|{other})$"
    strict, lenient = place("strict"), place("lenient")
    options = {"subscribePattern": pattern, "startingOffsets": "earliest"}
    queries = [strict.start(**options), lenient.start(**options, **LENIENT)]
    try:
        for query in queries:
            wait_until("the first batch", lambda query=query: is_at(query, 100), query)
        cluster.delete_topics({topic})
        assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in failure_of(queries[0])
        put(broker.bootstrap_servers, other, 0, numbered(100, 110))
        wait_until("the other topic", lambda: read_to(queries[1]) == 10, queries[1])
    finally:
        for query in queries:
            query.stop()
    assert lenient.values() == numbered(0, 110)
    # The checkpoint has not got the loss: it fails again, by the same name, until it may go on.
    assert "KAFKA_DATA_LOSS.PARTITIONS_DELETED" in failure_of(strict.start(**options))
    strict.run(**options, **LENIENT)
    assert strict.values() == numbered(0, 110)


def test_partition_added_under_available_now_is_left_to_the_next_run(broker, cluster, topic, place):
    """The snapshot has not got it, nor does it bound a batch that an earlier run has logged."""
    here = place("snapshot")
    here.run(subscribe=topic, startingOffsets="earliest")
    put(broker.bootstrap_servers, topic, 0, numbered(100, 110))
    here.run(subscribe=topic)
    last = here.forget_last_batch()
    logged = here.checkpoint / "offsets" / str(last)
    logged.write_text(logged.read_text().replace("110", "115"))
    (logged.with_name(f".{last}.crc")).unlink(missing_ok=True)
    soon = {"kafkaConsumer.pollTimeoutMs": "2000"}
    failing = here.start(subscribe=topic, trigger={"availableNow": True}, **soon)
    assert "COULD_NOT_READ_OFFSET_RANGE" in failure_of(failing)
    put(broker.bootstrap_servers, topic, 0, numbered(110, 115))
    cluster.add_partitions({topic: 2})
    put(broker.bootstrap_servers, topic, 1, numbered(115, 120))
    here.run(subscribe=topic)
    assert here.values() == numbered(0, 120)
