"""The snapshot of Trigger.AvailableNow: what was told of it stays as it was told."""

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.available_now import AvailableNow, AvailableNowFailed

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


def test_ends_that_lie_before_the_query_are_asked_for_again_once():
    """That it is beyond what is there now, too, is its loss: no run lasts until that has passed."""
    asked = []

    def ask(at):
        asked.append(at)
        return {FIRST: 5, SECOND: 3}

    snapshot = AvailableNow({FIRST: 5, SECOND: 2})
    for _ in range(2):
        assert snapshot.ends_beyond({FIRST: 6}, ask) == {FIRST: 5, SECOND: 2}
    assert asked == [{FIRST: 6}]


def test_ends_that_do_not_lie_before_the_query_are_not_asked_for_again():
    """Those of partitions that it has not got yet are, though nothing lies before 0."""
    asked = []
    snapshot = AvailableNow({FIRST: 5})
    assert snapshot.ends_beyond({FIRST: 5}, asked.append) == {FIRST: 5}
    assert asked == []
    snapshot = AvailableNow({FIRST: 5})
    assert snapshot.ends_beyond({SECOND: 0}, lambda _: {SECOND: 0}) == {FIRST: 5, SECOND: 0}


def test_a_query_that_starts_beyond_the_snapshot_ends_where_it_starts():
    snapshot = AvailableNow({FIRST: 5})
    snapshot.reach({FIRST: 4, SECOND: 3})
    assert snapshot.ends == {FIRST: 5}
    snapshot.reach({FIRST: 6})
    assert snapshot.ends == {FIRST: 6}


@pytest.mark.parametrize(
    ("end", "latest"),
    [
        ({FIRST: 5, SECOND: 2}, {FIRST: 5, SECOND: 2}),
        ({FIRST: 4}, {FIRST: 4, SECOND: 9}),
        ({}, {}),
    ],
)
def test_a_batch_within_the_snapshot_and_what_is_there_is_planned(end, latest):
    AvailableNow({FIRST: 5, SECOND: 2}).check(end, latest)


@pytest.mark.parametrize(
    ("end", "latest", "condition", "named"),
    [
        ({FIRST: 5, SECOND: 0}, {FIRST: 9, SECOND: 9}, "MISMATCHED", "late-0"),
        ({FIRST: 6}, {FIRST: 9}, "THAN_PREFETCHED", "orders-0 at 5, not 6"),
        ({FIRST: 5}, {}, "LOST_TOPIC_PARTITIONS", "orders-0"),
        ({FIRST: 5}, {FIRST: 4}, "THAN_LATEST_WITH_TRIGGER", "orders-0 at 4, not 5"),
    ],
)
def test_a_batch_beyond_them_fails_with_sparks_condition(end, latest, condition, named):
    with pytest.raises(AvailableNowFailed, match=f"{condition}.*{named}"):
        AvailableNow({FIRST: 5}).check(end, latest)
