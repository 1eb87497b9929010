"""What a member knows of the logs that its positions are in, from one generation to the next."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
ELSEWHERE = TopicPartition("others", 0)


@pytest.mark.parametrize(("committed", "known"), [(3, 4), (4, 4), (5, 5), (-1, 4)])
def test_of_what_is_known_before_an_offset_the_later_epoch_counts(committed, known):
    seen = Seen(epochs={FIRST: (10, 4)})
    seen.note_committed({FIRST: CommittedOffset(10, "", committed)})
    assert seen.epoch_before(FIRST, 10) == known


def test_an_epoch_is_known_before_its_own_offset_alone():
    seen = Seen(epochs={FIRST: (10, 4)})
    assert [seen.epoch_before(FIRST, offset) for offset in (9, 10, 11)] == [-1, 4, -1]
    assert seen.epoch_before(SECOND, 10) == -1
    seen.note_committed({FIRST: CommittedOffset(12, "", 3)})
    assert [seen.epoch_before(FIRST, offset) for offset in (10, 12)] == [-1, 3]


def test_in_the_next_generation_it_is_about_what_is_still_read_from_where_it_was():
    seen = Seen(
        topic_ids={"orders": b"1", "others": b"2"},
        epochs={FIRST: (10, 4), SECOND: (20, 4), ELSEWHERE: (5, 1)},
        astray={FIRST, SECOND},
    )
    after = seen.in_next_generation({FIRST, SECOND}, {FIRST})
    assert after.topic_ids == {"orders": b"1"}
    assert after.epochs == {FIRST: (10, 4)}
    assert after.astray == {FIRST}
    assert after.foreign == {SECOND}, "whoever had it may have seen that the topic was made again"
    assert seen.in_next_generation({FIRST, ELSEWHERE}, {FIRST}).foreign == {ELSEWHERE}


def test_what_the_group_is_to_be_asked_about_is_asked_in_the_next_generation():
    """Nothing is committed of it before."""
    unsure = {FIRST, SECOND}
    seen = Seen(astray=set(unsure), foreign=set(unsure), unsure=set(unsure))
    after = seen.in_next_generation({FIRST, ELSEWHERE}, {FIRST})
    assert after.unsure == after.astray == {FIRST}
    assert after.foreign == {FIRST, ELSEWHERE}


def test_what_was_sought_is_sought_until_a_leader_has_answered():
    seen = Seen(foreign={FIRST, SECOND}, sought={FIRST, SECOND})
    seen.note_answered([SECOND])
    after = seen.in_next_generation({FIRST, SECOND}, {FIRST, SECOND})
    assert after.foreign == after.sought == {FIRST}


def test_of_what_no_leader_has_answered_about_it_stays_known_which_topic_was_named_first():
    """Else one made again meanwhile would be gone on with, at an offset of the one before."""
    seen = Seen(topic_ids={"orders": b"1"}, refused_ids={b"1"}, foreign={FIRST, SECOND})
    after = seen.in_next_generation({FIRST}, {FIRST})
    assert (after.topic_ids, after.refused_ids) == ({"orders": b"1"}, {b"1"})
    assert after.foreign == {FIRST}


def test_what_was_sought_is_so_only_where_it_is_gone_on_with():
    """The other one begins where its group is."""
    seen = Seen(foreign={FIRST, SECOND}, sought={FIRST, SECOND})
    assert seen.in_next_generation({FIRST, SECOND}, {FIRST}).sought == {FIRST}
