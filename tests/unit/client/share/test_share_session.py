"""What a request of a share session says to its leader, without one."""

from __future__ import annotations

from pyspark_kafkaproto import Acknowledge, TopicPartition
from pyspark_kafkaproto.client.share.held import Acquired, Held
from pyspark_kafkaproto.client.share.session import ShareSession
from pyspark_kafkaproto.net import Endpoint, ShareConfig

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
ID = bytes(15) + b"1"
CONFIG = ShareConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})


def test_a_partition_that_is_only_acknowledged_is_not_fetched_from_then_on():
    """Brokers go on with every partition that a fetch has named, until it is forgotten."""
    session = ShareSession(Endpoint("b", 1), None, ("g", "m"))

    def fetch(*partitions):
        request = session.fetch([(item, ID) for item in partitions], CONFIG, 1.0)
        session.answered()
        named = {part.partition_index for topic in request.topics for part in topic.partitions}
        return named, {n for topic in request.forgotten_topics_data for n in topic.partitions}

    held = Held(Acquired(FIRST, 0, 9, 1), ID)
    held.give(0, 9)
    assert fetch(FIRST, SECOND) == ({0, 1}, set())
    session.hold([held])
    assert fetch(SECOND) == (set(), {0})
    held.mark(Acknowledge.ACCEPT, 0, 9)
    assert fetch(SECOND) == ({0}, {0})
    assert fetch(SECOND) == (set(), set())
    assert fetch(FIRST, SECOND) == ({0}, set())


def test_of_topics_that_come_and_go_it_knows_the_names_that_it_needs():
    """An answer names topics by their ids: those that are fetched, and those of what we hold."""
    session = ShareSession(Endpoint("b", 1), None, ("g", "m"))
    ids = [bytes(15) + bytes([number]) for number in range(5)]
    held = Held(Acquired(TopicPartition("topic-0", 0), 0, 9, 1), ids[0])
    held.give(0, 9)
    for number, topic_id in enumerate(ids):
        session.fetch([(TopicPartition(f"topic-{number}", 0), topic_id)], CONFIG, 1.0)
        session.answered()
        session.hold([held] if number == 0 else [])
    assert session.names == {ids[number]: f"topic-{number}" for number in (0, 3, 4)}
    held.mark(Acknowledge.ACCEPT, 0, 9)
    session.acknowledge()
    assert session.names[ids[0]] == "topic-0", "its answer is to come"


def test_what_is_given_out_again_is_acknowledged_once():
    """The lock of what was renewed ran out: a broker refuses batches that overlap, all of them."""
    session = ShareSession(Endpoint("b", 1), None, ("g", "m"))
    for first, last, count in ((0, 9, 1), (5, 14, 2)):
        held = Held(Acquired(FIRST, first, last, count), ID)
        session.hold([held])
        held.give(first, last)
    for held in session.helds:
        held.mark(Acknowledge.ACCEPT, 0, 14)
    (topic,) = session.acknowledge().topics
    (partition,) = topic.partitions
    batches = partition.acknowledgement_batches
    assert [(one.first_offset, one.last_offset) for one in batches] == [(0, 4), (5, 14)]
