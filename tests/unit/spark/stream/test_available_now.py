"""The snapshot of Trigger.AvailableNow: what was told of it stays as it was told."""

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.available_now import AvailableNow

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("late", 0)


def test_ends_that_were_given_out_are_not_changed():
    """Streams keep offsets, and the JSON that they were last told as."""
    snapshot = AvailableNow({FIRST: 5})
    before = snapshot.ends
    snapshot.add_topics([SECOND], lambda _: {SECOND: 2})
    added = snapshot.ends
    assert snapshot.ends_beyond({FIRST: 6}, lambda _: {FIRST: 7}) == {FIRST: 7, SECOND: 2}
    assert before == {FIRST: 5}
    assert added == {FIRST: 5, SECOND: 2}
