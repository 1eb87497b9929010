"""What a member tells of commits that it did not wait for, where some are answered and some not."""

from __future__ import annotations

from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import commits as commits_module
from pyspark_kafkaproto.client.group import membership as membership_module
from pyspark_kafkaproto.client.group.commits import Commits
from pyspark_kafkaproto.client.group.membership import Membership
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from tests.interrupted import Interrupted

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_of_who_closes_those_that_were_answered_have_not_failed():
    told = []
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    membership = Membership()
    commits = Commits(
        config, membership, Seen, lambda offsets, error: told.append((offsets, error))
    )
    commits.give({FIRST: CommittedOffset(7)}, wait=False)
    commits.give({FIRST: CommittedOffset(8)}, wait=False)
    first, _ = membership.take_commits()
    membership.answer([first], None)
    commits.see_last_through(Deadline.after(0.0))
    (one, answered), (other, unheard) = told
    assert (one, answered) == ({FIRST: 7}, None)
    assert other == {FIRST: 8}
    assert isinstance(unheard, DeadlineExceeded)
    assert commits.is_at(FIRST, 7)


def test_a_listener_that_fails_is_told_of_the_others_the_next_time():
    told = []

    def tell(offsets, error):
        told.append((offsets, error))
        if error is not None:
            raise error

    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    membership = Membership()
    commits = Commits(config, membership, Seen, tell)
    for offset in (7, 8, 9):
        commits.give({FIRST: CommittedOffset(offset)}, wait=False)
    failed = DeadlineExceeded("commit offsets", 30.0)
    membership.answer(membership.take_commits(), failed)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            commits.report()
    commits.report()
    assert told == [({FIRST: offset}, failed) for offset in (7, 8, 9)]


def with_failing_listener():
    """Whoever it tells of commits fails each time; with a member, and what was told."""
    told = []

    def tell(offsets, error):
        told.append(offsets)
        raise ZeroDivisionError(len(told))

    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    membership = Membership()
    return Commits(config, membership, Seen, tell), membership, told


@pytest.mark.parametrize("answered", [0, 1, 3])
def test_a_listener_that_fails_is_told_of_all_the_others_as_its_consumer_closes(answered):
    commits, membership, told = with_failing_listener()
    for offset in (7, 8, 9):
        commits.give({FIRST: CommittedOffset(offset)}, wait=False)
    membership.answer(membership.take_commits()[:answered], None)
    with pytest.raises(ZeroDivisionError, match="1"):
        commits.see_last_through(Deadline.after(0.0))
    assert told == [{FIRST: offset} for offset in (7, 8, 9)]
    assert commits.is_at(FIRST, 9) is (answered == 3)


@pytest.mark.parametrize("closes", [False, True])
def test_a_listener_that_fails_is_told_of_all_as_the_last_commit_is_given(closes):
    commits, membership, told = with_failing_listener()
    commits.give({FIRST: CommittedOffset(7)}, wait=False)
    commits.give({FIRST: CommittedOffset(8)}, wait=False)
    first, second = membership.take_commits()
    membership.answer([first], None)
    commits.give_last(lambda: {FIRST: CommittedOffset(20)}, Deadline.after(0.0))
    membership.answer([second, *membership.take_commits()], None)
    see = commits.see_last_through if closes else commits.see_through
    with pytest.raises(ZeroDivisionError, match="1"):
        see(Deadline.after(0.0))
    with suppress(ZeroDivisionError):
        commits.report()
    assert told == [{FIRST: 7}, {FIRST: 8}]
    commits.report()


@pytest.mark.parametrize("nth", range(1, 8))
def test_wherever_the_telling_is_interrupted_what_failed_is_given_again(nth):
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    membership = Membership()
    commits = Commits(config, membership, Seen, None)
    positions = {FIRST: CommittedOffset(7)}
    commits.give(positions, wait=False)
    membership.answer(membership.take_commits(), DeadlineExceeded("commit offsets", 30.0))
    files = {commits_module.__file__, membership_module.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        commits.report()
    commits.report()
    assert commits.moved(positions) == positions


def test_what_is_under_way_is_not_committed_again_unless_it_fails():
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    membership = Membership()
    commits = Commits(config, membership, Seen, None)
    before, now = ({FIRST: CommittedOffset(offset, leader_epoch=3)} for offset in (7, 8))
    for positions in (before, now):
        assert commits.moved(positions) == positions
        commits.give(positions, wait=False)
        assert commits.moved(positions) == {}
    assert commits.moved(before) == before
    membership.answer(membership.take_commits(), DeadlineExceeded("commit offsets", 30.0))
    assert commits.moved(now) == {}, "nobody has said so yet"
    commits.report()
    assert commits.moved(now) == now


def test_what_was_waited_for_in_vain_may_come_late():
    """As what nobody waited for: the next automatic commits are to put the group right again."""
    config = ConsumerConfig.parse(
        {"bootstrap.servers": "b:1", "group.id": "g", "default.api.timeout.ms": "1"}
    )
    membership = Membership()
    commits = Commits(config, membership, Seen, None)
    before, now = ({FIRST: CommittedOffset(offset)} for offset in (7, 8))
    with pytest.raises(DeadlineExceeded):
        commits.give(before, wait=True)
    commits.give(now, wait=False)
    membership.answer(membership.take_commits(), None)
    commits.report()
    assert commits.moved(now) == now


def test_what_is_under_way_is_of_the_topic_that_it_was_given_for():
    """The same offset of one that was made again since is to be committed all the same."""
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    seen = Seen(topic_ids={"orders": b"1"})
    commits = Commits(config, Membership(), lambda: seen, None)
    now = {FIRST: CommittedOffset(7)}
    commits.give(now, wait=False)
    assert commits.moved(now) == {}
    seen.topic_ids["orders"] = b"2"
    assert commits.moved(now) == now


def test_a_commit_to_a_topic_made_again_makes_none_of_those_to_the_one_before():
    """A group has nothing of what was committed to that, in whichever partition."""
    config = ConsumerConfig.parse({"bootstrap.servers": "b:1", "group.id": "g"})
    seen, membership = Seen(topic_ids={"orders": b"1"}), Membership()
    commits = Commits(config, membership, lambda: seen, None)
    now = {FIRST: CommittedOffset(7), SECOND: CommittedOffset(9)}
    for given, topic_id in ((now, b"1"), ({FIRST: CommittedOffset(7)}, b"2")):
        seen.topic_ids["orders"] = topic_id
        commits.give(given, wait=False)
        membership.answer(membership.take_commits(), None)
        commits.report()
    assert commits.moved(now) == {SECOND: CommittedOffset(9)}
