"""What the two threads of a member may do to each other."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import membership as membership_module
from pyspark_kafkaproto.client.group.membership import Membership, State
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.net import Deadline
from tests.interrupted import Interrupted

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
ONE = frozenset({FIRST})


@pytest.fixture
def joined():
    """A membership that is to read both partitions."""
    membership = Membership()
    membership.joined(GroupMember("m", 1), BOTH)
    return membership


def in_epoch(membership, epoch, *assignments):
    for assignment in assignments:
        membership.goes_on(GroupMember("m", epoch), assignment)


def test_what_is_to_be_read_is_claimed_through_epochs(joined):
    seen = joined.view
    in_epoch(joined, 2, frozenset(BOTH))
    assert joined.claim(seen)
    assert (joined.owned, joined.member.generation) == (BOTH, 2)


@pytest.mark.parametrize("others", [[ONE], [ONE, frozenset(set(BOTH))]])
def test_what_was_taken_away_since_it_was_looked_at_is_not_claimed(joined, others):
    """Nor where it has come back: another member may have read on, and committed."""
    seen = joined.view
    in_epoch(joined, 2, *others)
    assert not joined.claim(seen)
    assert not joined.owned


@pytest.mark.parametrize("happens", ["rebalance", "lost"])
def test_nothing_is_claimed_in_a_generation_that_is_over(joined, happens):
    seen = joined.view
    getattr(joined, happens)("for a test")
    assert not joined.claim(seen)


def test_what_is_given_up_is_owned_no_more(joined):
    assert joined.claim(joined.view)
    joined.give_up(frozenset({SECOND}))
    assert joined.owned == ONE
    joined.lost("for a test")
    joined.released()
    assert (joined.state, joined.owned, joined.assignment) == (State.JOINING, set(), set())


def test_what_was_given_up_is_left_out_of_commits_that_were_given_before(joined):
    """Whoever has it now may have committed more; and whoever gave them hears of that."""
    both = {FIRST: CommittedOffset(7), SECOND: CommittedOffset(3)}
    first = {FIRST: CommittedOffset(8)}
    before, alone = (joined.commit(offsets, {}, Deadline.after(60)) for offsets in (both, first))
    joined.give_up(frozenset({SECOND}))
    behind = joined.commit(both, {}, Deadline.after(60))
    for commit in (before, alone, behind):
        joined.leave_out(commit)
    assert (before.left, before.is_late) == ({FIRST: CommittedOffset(7)}, True)
    assert (alone.left, alone.is_late) == (first, False)
    assert (behind.left, behind.is_late) == (both, False)


def test_of_what_was_given_up_nothing_is_kept_that_no_commit_asks_about(joined):
    """Topics come and go for years; commits ask about what was given up while they waited."""
    topics = [frozenset({TopicPartition(f"topic-{number}", 0)}) for number in range(3)]
    joined.give_up(topics[0])
    assert not joined._given_up
    commit = joined.commit({FIRST: CommittedOffset(7)}, {}, Deadline.after(60))
    joined.give_up(topics[1])
    assert joined._given_up.keys() == topics[1]
    joined.answer(joined.take_commits(), None)
    joined.answer([commit], None)  # once more, as it may be in the end
    joined.give_up(topics[2])
    assert not joined._given_up


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 60))
def test_wherever_the_reader_is_interrupted_its_keeper_goes_on(joined, nth):
    """A Condition is taken by a function of Python: behind that an interrupt left it taken."""
    files = {membership_module.__file__, threading.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files, behind_c=True):
        joined.polled()
        joined.wait_for_change(joined.view, Deadline.after(0.01))
        joined.commit({FIRST: CommittedOffset(7)}, {}, Deadline.after(1.0))
        joined.close()
    keeper = threading.Thread(target=joined.take_commits, daemon=True)
    keeper.start()
    keeper.join(5.0)
    assert not keeper.is_alive()
