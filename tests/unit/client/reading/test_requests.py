"""What a Fetch says: all that it was given, and whom to serve first."""

from __future__ import annotations

from pyspark_kafkaproto.client.reading.requests import Limits, Scope, Terms, fetch_request
from pyspark_kafkaproto.cluster import TopicPartition

LIMITS = Limits(response_bytes=1000, min_bytes=7, wait_s=0.5)
EARLY, LATE = b"a" * 16, b"z" * 16


def terms(topic, partition, topic_id=EARLY):
    """Numbers that are all different."""
    return Terms(TopicPartition(topic, partition), topic_id, 20, 3, 2, 500)


def request(scope, *, is_read_committed=True):
    return fetch_request(scope, LIMITS, "here", is_read_committed=is_read_committed)


def named(topics):
    return [(topic.topic, topic.topic_id, topic.partitions) for topic in topics]


def test_limits_and_rack_are_those_given():
    made = request(Scope([terms("orders", 0)]))
    assert (made.max_bytes, made.min_bytes, made.max_wait_ms) == (1000, 7, 500)
    assert made.rack_id == "here"
    (asked,) = made.topics[0].partitions
    assert (asked.partition, asked.fetch_offset, asked.partition_max_bytes) == (0, 20, 500)
    assert (asked.current_leader_epoch, asked.last_fetched_epoch) == (3, 2)


def test_isolation_is_what_is_read():
    scope = Scope([terms("orders", 0)])
    levels = [request(scope, is_read_committed=value).isolation_level for value in (False, True)]
    assert levels == [0, 1]


def test_without_a_session_none_is_named():
    """A broker ends the session that is named beside epoch -1, whosever it is."""
    made = request(Scope([terms("orders", 0)]))
    assert (made.session_id, made.session_epoch) == (0, -1)


def test_topics_stand_in_the_order_of_their_first_partitions():
    """A broker fills its answer in this order: who waited longest is not to be served last."""
    wanted = [terms("b", 1, LATE), terms("a", 3), terms("b", 0, LATE), terms("a", 2)]
    made = request(Scope(wanted))
    assert [topic.topic for topic in made.topics] == ["b", "a"]
    assert [[item.partition for item in topic.partitions] for topic in made.topics] == [
        [1, 0],
        [3, 2],
    ]
    left = request(Scope([], wanted)).forgotten_topics_data
    assert named(left) == [("b", LATE, (1, 0)), ("a", EARLY, (3, 2))]
