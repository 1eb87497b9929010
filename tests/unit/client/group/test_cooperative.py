"""Members of the classic protocol that read on while their group shares out."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.members import read_assignment
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import DEFAULT, close
from tests.fake_log import NOT_LEADER
from tests.unit.client.answers import refused
from tests.unit.client.group.fake_sharing import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    FakeSharing,
)
from tests.unit.client.group.happenings import Happenings
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_together, poll_until
from tests.unit.cluster.committing import committing

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})


@pytest.fixture
def sharing(brokers):
    """The coordinator of group `g` with all its members, at node 1."""
    return FakeSharing(brokers)


@pytest.fixture
def cooperative_of(consumer_of):
    """The same as `consumer_of`, by the cooperative assignor."""

    def open_consumer(topics=("orders",), listeners=None, **properties):
        strategy = {"partition_assignment_strategy": "cooperative-sticky"}
        return consumer_of(topics, listeners, **strategy | properties)

    return open_consumer


@pytest.mark.slow
def test_what_goes_to_another_member_is_given_up_and_nothing_else(
    filled, sharing, cooperative_of, noted
):
    ours = cooperative_of(listeners=noted.listeners())
    assert len(poll_rows(ours, 40)) == 40
    noted.clear()
    other, rows = cooperative_of(), []
    poll_together([ours, other], rows, lambda: len(other.assignment) == 1, "its share")
    assert noted == [("revoked", other.assignment)]
    assert ours.assignment == BOTH - other.assignment
    assert not rows, "the first one had said how far it came"
    (kept,) = ours.assignment
    filled.logs[kept].append(b"more")
    poll_together([ours, other], rows, lambda: rows, "one more row")
    assert rows == [(kept.partition, 20)]
    claims = [claim.partitions for who, claim in sharing.claims if who == "m1"]
    assert claims[0] == frozenset()
    assert claims[-2:] == [BOTH, {kept}], "all that is read, then all that is left"


@pytest.mark.slow
def test_a_topic_that_is_made_again_as_its_group_shares_out_is_begun_with_anew(
    filled, sharing, cooperative_of
):
    """Nothing was read of it yet: no offset of before is one of the new topic."""
    sharing.committed |= {FIRST: (15, ""), SECOND: (15, "")}
    filled.on("Fetch", refused(NOT_LEADER))

    def make_again(_):
        with filled.at_once():
            filled.make_again("orders", 2)
            for item in BOTH:
                filled.logs[item].fill(3)
            sharing.committed.clear()
        filled.on("Fetch", DEFAULT)

    ours = cooperative_of(listeners={"on_revoke": make_again}, enable_auto_commit="false")
    poll_until(ours, lambda: filled.asked("Fetch"), "a Fetch")
    other, rows = cooperative_of(), []
    poll_together([ours, other], rows, lambda: len(rows) >= 60, "all rows of the new topic")
    assert sorted(rows) == [(part, offset) for part in range(2) for offset in range(30)]


def wait_for_another(brokers, sharing):
    """Have the group wait for a member that does not come."""
    with brokers.at_once():
        sharing.members["slow"] = sharing.members["m1"]
        sharing.rebalance()
    brokers.wait_for_call("JoinGroup", 3)


@pytest.mark.slow
def test_rows_come_and_are_committed_while_others_are_waited_for(filled, sharing, cooperative_of):
    """One that is slow to join holds up the next generation, and nobody's reading or committing."""
    ours = cooperative_of()
    poll_rows(ours, 40)
    wait_for_another(filled, sharing)
    generation = sharing.generation
    filled.logs["orders", 0].append(b"more")
    assert poll_rows(ours, 1) == [(0, 20)]
    ours.commit()
    assert sharing.committed["orders", 0] == (21, "")
    assert sharing.generation == generation, "which takes commits until it ends"
    with filled.at_once():
        sharing.fence("slow")
    poll_until(ours, lambda: ours.group_member.generation > generation, "the next generation")
    assert ours.assignment == BOTH


@pytest.mark.slow
def test_the_last_commit_does_not_wait_for_who_is_slow_to_join(filled, sharing, cooperative_of):
    """It would be given up in the end, and all that was read be read again."""
    ours = cooperative_of()
    poll_rows(ours, 40)
    wait_for_another(filled, sharing)
    sharing.patience_s = 1.0
    ours.close()
    assert sharing.committed == {FIRST: (20, ""), SECOND: (20, "")}
    assert filled.calls[-1].api == "LeaveGroup"


@pytest.mark.slow
@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID])
def test_a_commit_that_a_generation_overtakes_is_good_in_the_next_one(
    filled, sharing, cooperative_of, noted, code
):
    """What became of the member is told by the answer to its JoinGroup, which is on its way."""
    ours = cooperative_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    noted.clear()

    def begin_the_next(call):
        sharing.fence("slow")
        return committing(code)(call)

    filled.on("OffsetCommit", begin_the_next, sharing.commit)
    wait_for_another(filled, sharing)
    generation = sharing.generation
    ours.commit()
    assert sharing.committed == {FIRST: (20, ""), SECOND: (20, "")}
    assert (sharing.generation, noted) == (generation + 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_an_answer_that_is_lost_costs_nothing(filled, sharing, cooperative_of, noted, api):
    ours = cooperative_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    noted.clear()
    answer = {"JoinGroup": sharing.join, "SyncGroup": sharing.sync}[api]

    def unheard(call):
        answer(call)
        return close()

    filled.on(api, unheard, answer)
    before = len(filled.asked("SyncGroup"))
    sharing.rebalance()
    poll_until(ours, lambda: len(filled.asked("SyncGroup")) > before, "a generation more")
    filled.logs["orders", 1].append(b"more")
    assert poll_rows(ours, 1) == [(1, 20)]
    ours.commit()
    assert (noted, ours.positions) == ([], {FIRST: 20, SECOND: 21})


@pytest.mark.slow
def test_who_is_told_of_another_rebalance_instead_of_its_share_reads_on_and_commits(
    filled, sharing, cooperative_of, noted
):
    ours = cooperative_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    noted.clear()

    def commit_meanwhile(call):
        answer = sharing.join(call)
        # Not through the consumer, which its own thread uses at this moment.
        ours._membership.commit({FIRST: CommittedOffset(7)}, {}, Deadline.after(PATIENCE_S))
        return answer

    filled.on("JoinGroup", commit_meanwhile, sharing.join)
    filled.on("SyncGroup", SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS), sharing.sync)
    sharing.rebalance()
    generation = sharing.generation
    poll_until(ours, lambda: sharing.committed, "the commit")
    assert sharing.committed == {("orders", 0): (7, "")}
    assert sharing.generation == generation + 2
    assert not noted


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])
def test_who_is_given_up_loses_all_and_claims_nothing(
    filled, sharing, cooperative_of, noted, is_known
):
    ours = cooperative_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    noted.clear()
    if is_known:
        late = HeartbeatResponse(error_code=ILLEGAL_GENERATION)
        filled.on("Heartbeat", late, sharing.beat)
    else:
        with filled.at_once():
            sharing.fence("m1")
    poll_until(ours, noted.has("assigned"), "its coming back")
    assert noted == [("lost", BOTH), ("assigned", BOTH)]
    who, claim = sharing.claims[-1]
    assert (who, claim.partitions) == ("m1" if is_known else "m2", frozenset())


def test_a_commit_of_who_was_given_up_is_refused(filled, sharing, cooperative_of):
    ours = cooperative_of(heartbeat_interval_ms=3000)
    poll_rows(ours, 40)
    with filled.at_once():
        sharing.fence("m1")
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        ours.commit()
    assert not sharing.committed


@pytest.mark.slow
def test_beside_an_eager_assignor_all_is_given_up(filled, sharing, consumer_of, noted):
    """As in Java: so a group goes over from that one, member by member."""
    strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,range"
    both = {"partition_assignment_strategy": strategy}
    ours = consumer_of(listeners=noted.listeners(), **both)
    poll_rows(ours, 40)
    other = consumer_of(partition_assignment_strategy="cooperative-sticky")
    poll_together([ours, other], [], lambda: len(other.assignment) == 1, "its share")
    assert ("revoked", BOTH) in noted
    assert all(claim.partitions == frozenset() for who, claim in sharing.claims if who == "m1")


@pytest.mark.slow
def test_the_sticky_assignor_remembers_what_was_read(filled, sharing, consumer_of, noted):
    sticky = {"partition_assignment_strategy": "sticky"}
    ours = consumer_of(listeners=noted.listeners(), **sticky)
    poll_rows(ours, 40)
    group, rows = [ours, consumer_of(**sticky)], []
    poll_together(group, rows, noted.has("assigned", 2), "what is left")
    assert noted[1] == ("revoked", BOTH), "it is an eager one"
    _, kept = noted[2]
    group.append(consumer_of(**sticky))
    poll_together(group, rows, noted.has("assigned", 3), "all it has")
    assert noted[4] == ("assigned", kept)
    assert len(kept) == 1
    assert read_assignment(sharing.shared["m3"], "the third") == frozenset()


@pytest.mark.slow
def test_a_member_of_a_transaction_goes_through_generations(filled, sharing, cooperative_of):
    ours = cooperative_of()
    poll_rows(ours, 40)
    before = ours.group_member
    sharing.rebalance()
    poll_until(ours, lambda: ours.group_member != before, "the next generation")
    assert ours.group_member == before._replace(generation=before.generation + 1)


@pytest.mark.slow
def test_topics_that_grow_are_shared_out_while_it_reads(filled, sharing, cooperative_of, noted):
    ours = cooperative_of(listeners=noted.listeners(), metadata_max_age_ms=20)
    poll_rows(ours, 40)
    noted.clear()
    filled.add_topic("orders", 3)
    third = TopicPartition("orders", 2)
    poll_until(ours, lambda: third in ours.assignment, "what has come")
    assert noted == [("assigned", frozenset({third}))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_each_row_is_read_once_by_one_of_many_that_come_and_go(
    filled, sharing, cooperative_of, seed
):
    answers = {"JoinGroup": sharing.join, "SyncGroup": sharing.sync, "Heartbeat": sharing.beat}
    Happenings(seed, filled, cooperative_of, answers).check_each_row_once(80)
