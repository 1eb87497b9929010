"""Every way through a membership, at a fake coordinator."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto import arrow
from pyspark_kafkaproto.client import consumer as consumer_module
from pyspark_kafkaproto.client.consumer import Consumer
from pyspark_kafkaproto.client.group import failing, patience, reading
from pyspark_kafkaproto.client.group.classic.assignors import Subscriber
from pyspark_kafkaproto.client.group.classic.subscription import assignment_bytes
from pyspark_kafkaproto.client.group.membership import State
from pyspark_kafkaproto.client.group.tail import Tail
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.cluster.groups.members import read_assignment
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    DeadlineExceeded,
    LocalProtocolError,
)
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.examples import first
from tests.fake_broker import DEFAULT, STALL, FakeTopic, Fault, close, metadata, topic_id_of
from tests.fake_log import NOT_LEADER, Answered, Batch, FakeLog, fetch, list_offsets
from tests.fake_login import AS_KEYWORDS, login_again, want_login
from tests.fake_past import lead_in_the_past
from tests.fake_sessions import with_values
from tests.unit.client.answers import answered
from tests.unit.client.group.fake_group import FakeGroup
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of
from tests.unit.cluster.committing import (
    FakeCoordinator,
    committing,
    committing_each,
    unstable,
)
from tests.waiting import until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})

NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID = 16, 22, 25
COORDINATOR_NOT_AVAILABLE = 15
NOBODY = -1
KAFKA_STORAGE_ERROR = 56
OFFSET_METADATA_TOO_LARGE, UNSTABLE_OFFSET_COMMIT = 12, 88
INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID = 26, 27, 82


def beats(brokers, *codes):
    """Heartbeats answered with each of `codes` once; well again after them."""
    answers = [HeartbeatResponse(error_code=code) for code in codes]
    brokers.on("Heartbeat", *answers, HeartbeatResponse())


def divide_by_zero(*_):
    """What no error of ours is."""
    raise ZeroDivisionError


@pytest.mark.slow
def test_a_member_joins_reads_commits_and_leaves(filled, group, consumer_of):
    group.committed["orders", 1] = (15, "")
    consumer = consumer_of()
    rows = poll_rows(consumer, 25)
    assert sorted(rows) == [(0, n) for n in range(20)] + [(1, n) for n in range(15, 20)]
    assert consumer.assignment == BOTH
    assert consumer.positions == {FIRST: 20, SECOND: 20}
    assert consumer.member_id == "m1"
    consumer.close()
    assert group.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    joins = ["JoinGroup", "JoinGroup", "SyncGroup", "OffsetFetch"]
    assert group.said() == [*joins, "OffsetCommit", "LeaveGroup"]
    (left,) = filled.asked("LeaveGroup")
    assert [item.member_id for item in left.members] == ["m1"]
    (commit,) = filled.asked("OffsetCommit")
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("m1", 1)
    join = filled.asked("JoinGroup")[-1]
    names = [item.name for item in join.protocols]
    assert names == ["range", "roundrobin", "cooperative-sticky"]
    (sync,) = filled.asked("SyncGroup")
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "range")
    with pytest.raises(LocalProtocolError, match="closed"):
        consumer.poll()


@pytest.mark.slow
def test_batches_come_by_iterating_until_the_consumer_is_closed(filled, group, consumer_of):
    consumer = consumer_of()
    count = 0
    for batch in consumer:
        count += batch.num_rows
        if count == 40:
            consumer.close()
    assert count == 40


@pytest.mark.slow
def test_automatic_commits_name_what_earlier_polls_gave(filled, group, consumer_of):
    consumer = consumer_of(auto_commit_interval_ms=0, max_partition_fetch_bytes=1)
    poll_rows(consumer, 10)
    poll_until(consumer, lambda: len(group.committed) == 2, "a commit")
    assert sum(offset for offset, _ in group.committed.values()) <= 40
    poll_until(consumer, lambda: group.committed["orders", 0][0] == 20, "the last commit")


@pytest.mark.slow
@pytest.mark.parametrize("is_at_the_end", [False, True])
def test_automatic_commits_are_said_again_where_an_earlier_one_may_come_late(
    filled, coordinator, member_of, is_at_the_end
):
    """Whoever reads next would get the rows again."""
    consumer = member_of(auto_commit_interval_ms=0)
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", close(), coordinator.commit)
    both = {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    poll_until(consumer, lambda: coordinator.committed == both, "a commit")
    consumer.poll(0.1)
    coordinator.committed["orders", 0] = (10, "")  # here it comes
    if is_at_the_end:
        consumer.close()
    else:
        poll_until(consumer, lambda: coordinator.committed == both, "another commit")
    assert coordinator.committed == both


@pytest.mark.slow
def test_rows_that_met_an_error_are_not_committed(filled, group, brokers):
    config = {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g"}

    def read():
        with Consumer(config | {"auto.offset.reset": "earliest"}, {"orders"}) as consumer:
            poll_rows(consumer, 10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert group.committed == {}
    assert group.said()[-1] == "LeaveGroup"


@pytest.mark.slow
def test_a_rebalance_is_followed_and_positions_are_committed_before(
    filled, group, consumer_of, noted
):
    consumer = consumer_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    beats(filled, REBALANCE_IN_PROGRESS)
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("revoked", BOTH), ("assigned", BOTH)]
    joins = ["JoinGroup", "JoinGroup", "SyncGroup", "OffsetFetch"]
    assert group.said() == [*joins, "OffsetCommit", "JoinGroup", "SyncGroup", "OffsetFetch"]
    join = filled.asked("JoinGroup")[-1]
    assert (join.member_id, join.reason) == ("m1", "the group is rebalancing")
    assert consumer.positions == {FIRST: 20, SECOND: 20}


@pytest.mark.slow
def test_what_on_revoke_commits_is_still_ours(filled, group, consumer_of, noted):
    listeners = noted.listeners()
    consumer = consumer_of(
        listeners=listeners | {"on_revoke": lambda own: consumer.commit({FIRST: 7})},
        enable_auto_commit="false",
    )
    poll_rows(consumer, 40)
    beats(filled, REBALANCE_IN_PROGRESS)
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert group.committed == {("orders", 0): (7, "")}
    assert consumer.positions[FIRST] >= 7


@pytest.mark.slow
def test_who_has_read_stays_the_same_until_others_rows_come(filled, group, consumer_of):
    consumer = consumer_of()
    with pytest.raises(LocalProtocolError, match="poll first"):
        consumer.group_member  # noqa: B018 - raises
    poll_rows(consumer, 40)
    reader = GroupMember("m1", 1)
    assert consumer.group_member == reader
    beats(filled, UNKNOWN_MEMBER_ID)
    deadline = Deadline.after(PATIENCE_S)
    while consumer.member_id:  # the thread that beats has heard of it, and nobody polls
        deadline.check("the loss of the generation")
        time.sleep(0.01)
    assert consumer.group_member == reader
    poll_rows(consumer, 40)
    assert consumer.group_member.generation == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "comes_as"), [(ILLEGAL_GENERATION, "m1"), (UNKNOWN_MEMBER_ID, "")]
)
def test_a_generation_that_is_over_is_lost_without_a_commit(
    filled, group, consumer_of, noted, code, comes_as
):
    consumer = consumer_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    beats(filled, code)
    rows = poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
    assert not filled.asked("OffsetCommit")
    assert filled.asked("JoinGroup")[2].member_id == comes_as
    assert len(rows + poll_rows(consumer, 40 - len(rows))) == 40  # they are read again


@pytest.mark.slow
def test_a_static_member_joins_at_once_and_does_not_leave(filled, group, consumer_of):
    consumer = consumer_of(group_instance_id="till-1")
    poll_rows(consumer, 40)
    consumer.close()
    joins = filled.asked("JoinGroup")
    assert [item.group_instance_id for item in joins] == ["till-1"]
    assert filled.asked("OffsetCommit")[-1].group_instance_id == "till-1"
    assert not filled.asked("LeaveGroup")


def test_a_topic_that_is_not_subscribed_to_any_more_is_not_read(filled, group, consumer_of, caplog):
    """Brokers give a static member that comes back what it had, whatever it subscribes to."""
    own = {TopicPartition("orders", number) for number in range(2)}

    def give_all(call):
        group.sync(call)
        every = [*own, TopicPartition("many", 0)]
        return SyncGroupResponse(assignment=assignment_bytes(every))

    filled.on("SyncGroup", give_all)
    consumer = consumer_of(group_instance_id="one")
    poll_rows(consumer, 40)
    assert consumer.assignment == own
    assert "many-0: given to us, and not among our topics" in caplog.text


@pytest.mark.slow
def test_a_fenced_instance_says_so_at_every_poll_and_never_comes_back(filled, group, consumer_of):
    consumer = consumer_of(group_instance_id="till-1")
    poll_rows(consumer, 40)
    beats(filled, FENCED_INSTANCE_ID)
    with pytest.raises(BrokerError, match=r"FENCED_INSTANCE_ID.*taken over"):
        poll_until(consumer, lambda: False, "the error")
    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
        consumer.poll(0)
    assert len(filled.asked("JoinGroup")) == 1


@pytest.mark.slow
def test_a_coordinator_that_moves_is_followed(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.on("Heartbeat", HeartbeatResponse(error_code=NOT_COORDINATOR), node=1)
    filled.coordinators["g"] = 2
    poll_until(consumer, lambda: filled.asked("Heartbeat", node=2), "a heartbeat at node 2")
    consumer.commit()
    assert filled.asked("OffsetCommit", node=2)
    assert len(filled.asked("JoinGroup")) == 2  # the first for the id


@pytest.mark.slow
@pytest.mark.parametrize(
    "answers",
    [
        {"JoinGroup": close()},
        {"JoinGroup": JoinGroupResponse(error_code=NOT_COORDINATOR)},
        {"JoinGroup": JoinGroupResponse(error_code=REBALANCE_IN_PROGRESS)},
        {"JoinGroup": JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID)},
        {"SyncGroup": SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS)},
        {"SyncGroup": SyncGroupResponse(error_code=ILLEGAL_GENERATION)},
        {"SyncGroup": SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID)},
        {"SyncGroup": close()},
    ],
    ids=str,
)
def test_joining_goes_on_after_what_passes(filled, group, consumer_of, answers):
    wells = {"JoinGroup": group.join, "SyncGroup": group.sync}
    for api, answer in answers.items():
        filled.on(api, answer, answer, wells[api])
    assert len(poll_rows(consumer_of(), 40)) == 40


def test_a_refusal_for_good_is_raised_with_what_to_do(brokers, group, consumer_of):
    brokers.on("JoinGroup", JoinGroupResponse(error_code=INVALID_SESSION_TIMEOUT))
    consumer = consumer_of()
    with pytest.raises(
        BrokerError,
        match=r"group 'g'.*is 45000: the broker allows its group\.min\.session\.timeout\.ms",
    ):
        consumer.poll(10)


@pytest.mark.slow
def test_nobody_who_answers_is_an_error_and_the_next_poll_tries_again(filled, group, consumer_of):
    filled.on("FindCoordinator", close())
    consumer = consumer_of(default_api_timeout_ms=300)
    with pytest.raises((ConnectionFailed, TimeoutError)):
        consumer.poll(10)
    filled.on("FindCoordinator", DEFAULT)
    assert len(poll_rows(consumer, 40)) == 40


@pytest.mark.slow
def test_a_reader_that_does_not_poll_leaves_and_comes_back(filled, group, consumer_of, noted):
    consumer = consumer_of(max_poll_interval_ms=200, listeners=noted.listeners())
    poll_rows(consumer, 40)
    filled.wait_for_call("LeaveGroup")
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
    assert filled.asked("LeaveGroup")[0].members[0].reason == "no poll for max.poll.interval.ms"
    assert not filled.asked("OffsetCommit")


@pytest.mark.slow
def test_a_static_member_that_did_not_poll_comes_back_as_who_it_was(
    filled, coordinator, member_of, noted
):
    """It has not left for good: as another member it would have to drive itself out first."""
    own = {"group_instance_id": "till-1", "max_poll_interval_ms": 200}
    consumer = member_of(noted.listeners(), **own)
    poll_rows(consumer, 40)
    known = consumer.member_id
    until(lambda: consumer._membership.state is not State.STABLE, what="the end of its time")
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert consumer.member_id == known


@pytest.mark.slow
def test_the_leader_shares_out_for_all_members(brokers, consumer_of):
    group = FakeGroup(brokers, Subscriber("z", ["orders", "many"]))
    consumer = consumer_of()
    poll_until(consumer, lambda: consumer.assignment, "an assignment")
    assert consumer.assignment == {FIRST}
    other = read_assignment(group.shared["z"], "z")
    assert other == {SECOND, *(TopicPartition("many", number) for number in range(250))}


@pytest.mark.slow
def test_the_leader_shares_out_anew_when_a_topic_grows_or_comes(filled, group, consumer_of, noted):
    consumer = consumer_of(
        ("orders", "coming"), metadata_max_age_ms=20, listeners=noted.listeners()
    )
    poll_rows(consumer, 40)
    grown = filled.topics["orders"]
    filled.logs["orders", 2] = type(filled.logs["orders", 0])()
    grown.epochs.append(0)
    grown.leaders.append(1)
    poll_until(consumer, lambda: len(consumer.assignment) == 3, "the new partition")
    assert filled.asked("JoinGroup")[-1].reason == "topics have changed"
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.usefixtures("opinions_at_once", "group")
def test_the_leader_shares_out_what_is_left_when_a_topic_is_made_again_with_less(
    filled, consumer_of
):
    """The reader finds it so long before the next look, which comes sooner then."""
    consumer = consumer_of(metadata_max_age_ms=3_600_000)
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.make_again("orders")
        filled.logs["orders", 0].append(b"new")
    assert poll_rows(consumer, 1) == [(0, 0)]
    assert consumer.assignment == {TopicPartition("orders", 0)}
    assert filled.asked("JoinGroup")[-1].reason == "topics have changed"


@pytest.mark.usefixtures("opinions_at_once", "known_at_once")
def test_who_does_not_lead_meets_no_error_until_the_leader_shares_out_what_is_left(
    filled, group, consumer_of, caplog
):
    def share_out(*partitions):
        told = SyncGroupResponse(assignment=assignment_bytes(partitions))
        filled.on("SyncGroup", told)

    caplog.set_level("INFO")
    filled.on("JoinGroup", lambda call: with_values(group.join(call), leader="z", members=()))
    share_out(FIRST, SECOND)
    consumer = consumer_of(metadata_max_age_ms=3_600_000, heartbeat_interval_ms=500)
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.make_again("orders")
        filled.logs["orders", 0].append(b"new")
    poll_until(consumer, lambda: "no rows for a moment" in caplog.text, "what is gone")
    share_out(FIRST)
    beats(filled, REBALANCE_IN_PROGRESS)
    assert poll_rows(consumer, 1) == [(0, 0)]


@pytest.mark.usefixtures("opinions_at_once", "group")
def test_the_leader_shares_out_all_when_a_topic_is_made_again_with_more(filled, consumer_of):
    """Its reader goes on where the topic begins, and meets no error that would say so."""
    consumer = consumer_of(metadata_max_age_ms=3_600_000)
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.make_again("orders", 3)
        filled.logs["orders", 2].append(b"new")
    assert poll_rows(consumer, 1) == [(2, 0)]
    assert len(consumer.assignment) == 3
    assert filled.asked("JoinGroup")[-1].reason == "topics have changed"


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_static_leader_that_comes_back_shares_out_what_grew_meanwhile(
    filled, group, consumer_of, assignor
):
    """It is not asked to share out (KIP-814), and nobody else would notice."""
    own = {"group_instance_id": "till-1", "partition_assignment_strategy": assignor}
    with consumer_of(**own) as gone:
        poll_rows(gone, 40)
        group.returns = gone.member_id
    grown = filled.topics["orders"]
    filled.logs["orders", 2] = type(filled.logs["orders", 0])()
    grown.epochs.append(0)
    grown.leaders.append(1)
    back = consumer_of(**own, metadata_max_age_ms=20)
    poll_until(back, lambda: back.assignment == BOTH, "what it had")
    poll_until(back, lambda: len(back.assignment) == 3, "the new partition")
    assert filled.asked("JoinGroup")[-1].reason == "topics have changed"


@pytest.mark.slow
def test_a_static_leader_that_comes_back_disturbs_nobody(filled, group, consumer_of):
    group.others = (Subscriber("z", ["orders"]),)
    with consumer_of(group_instance_id="till-1") as gone:
        poll_until(gone, lambda: gone.assignment, "an assignment")
        group.returns = gone.member_id
    back = consumer_of(group_instance_id="till-1", metadata_max_age_ms=20)
    poll_until(back, lambda: back.assignment, "what it had")
    asked = len(filled.asked("Metadata"))
    poll_until(back, lambda: len(filled.asked("Metadata")) > asked + 3, "looks at the topics")
    assert group.generation == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reset", "position"),
    [("earliest", 5), ("latest", 20), ("by_duration:PT1H", 5), ("by_duration:PT0S", 20)],
)
def test_without_a_committed_offset_the_policy_says_where_to_begin(
    filled, group, consumer_of, reset, position
):
    filled.logs["orders", 0].start = 5
    filled.logs["orders", 0].newest_ms = int(time.time() - 60) * 1000
    group.committed["orders", 1] = (20, "")
    consumer = consumer_of(auto_offset_reset=reset)
    poll_until(consumer, lambda: consumer.assignment, "an assignment")
    consumer.poll(0)
    consumer.commit()
    assert group.committed["orders", 0][0] >= position
    filled.wait_for_call("Fetch")
    assert filled.asked("Fetch")[0].topics[0].partitions[0].fetch_offset == position


@pytest.mark.slow
def test_what_is_written_while_a_time_is_looked_up_is_read(filled, group, consumer_of):
    log = filled.logs["orders", 0]
    log.newest_ms = int(time.time() - 7200) * 1000
    group.committed["orders", 1] = (20, "")

    def written_then(call):
        answer = list_offsets(filled, call)
        if call.request.topics[0].partitions[0].timestamp >= 0:
            log.append(b"of this hour")
        return answer

    filled.on("ListOffsets", written_then)
    consumer = consumer_of(auto_offset_reset="by_duration:PT1H")
    assert poll_rows(consumer, 1) == [(0, 20)]


@pytest.mark.slow
def test_without_a_policy_nothing_committed_is_an_error(filled, group, consumer_of):
    consumer = consumer_of(auto_offset_reset="none")
    with pytest.raises(BrokerError, match=r"orders-0, orders-1.*committed nothing.*is none"):
        consumer.poll(10)
    group.committed |= {("orders", 0): (99, ""), ("orders", 1): (0, "")}
    with pytest.raises(BrokerError, match=r"orders-0: .*no offset 99.*is none"):
        poll_until(consumer, lambda: False, "the error")


@pytest.mark.slow
def test_a_position_that_is_an_error_keeps_no_other_from_being_read(filled, group, consumer_of):
    filled.logs["orders", 0].start = 12
    group.committed |= {("orders", 0): (3, ""), ("orders", 1): (0, "")}
    consumer = consumer_of(auto_offset_reset="none")
    gone = r"orders-0: .*no offset 3 .*is none"

    def poll_rows_around_errors(consumer, count):
        rows = []
        deadline = Deadline.after(PATIENCE_S)
        while len(rows) < count:
            deadline.check(f"waiting for {count} rows; there are {len(rows)}")
            with suppress(BrokerError):
                rows += rows_of(consumer.poll(0.05))
        return rows

    read = poll_rows_around_errors(consumer, 20)
    assert read == [(1, offset) for offset in range(20)]
    with pytest.raises(BrokerError, match=gone):
        poll_until(consumer, lambda: False, "the error again")
    filled.logs["orders", 1].fill(2)
    assert poll_rows_around_errors(consumer, 20) == [(1, offset) for offset in range(20, 40)]
    assert consumer.positions == {SECOND: 40}


@pytest.mark.slow
@pytest.mark.parametrize("is_led", [True, False])
@pytest.mark.parametrize("timeout_s", [0, 0.001])
def test_a_position_that_is_an_error_keeps_no_other_from_polls_shorter_than_an_answer(
    filled, group, consumer_of, timeout_s, is_led
):
    """Nor does a third one, that nobody leads, keep the error from being told again."""

    def answer_late(call):
        time.sleep(0.005)
        return fetch(filled, call)

    filled.logs["orders", 0].start = 12
    group.committed |= {("orders", 0): (3, ""), ("orders", 1): (0, "")}
    if not is_led:
        filled.topics["orders"] = FakeTopic(topic_id_of("orders"), [1, 1, NOBODY], [0, 0, 0])
        group.committed["orders", 2] = (0, "")
    filled.on("Fetch", answer_late)
    consumer = consumer_of(auto_offset_reset="none")
    rows, errors = [], 0
    deadline = Deadline.after(PATIENCE_S)
    while errors < 3 or len(rows) < 20:
        deadline.check(f"{len(rows)} rows, {errors} errors")
        try:
            rows += rows_of(consumer.poll(timeout_s))
        except BrokerError:
            errors += 1
    assert rows == [(1, offset) for offset in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("committed", [{}, {("orders", 1): (0, "")}])
def test_a_partition_without_leader_and_commit_keeps_no_other_from_beginning(
    filled, group, consumer_of, caplog, monkeypatch, committed
):
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    group.committed |= committed
    filled.topics["orders"].leaders[0] = NOBODY
    consumer = consumer_of()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    assert consumer.positions == {SECOND: 20}
    assert consumer.assignment == BOTH
    consumer.commit()
    assert ("orders", 0) not in group.committed
    assert "orders-0: group 'g' has committed nothing for it, and nobody leads it" in caplog.text
    filled.topics["orders"].leaders[0] = 1
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "by_duration:P1D"])
def test_a_leader_that_is_away_keeps_no_other_partition_from_beginning(
    filled, group, consumer_of, caplog, monkeypatch, reset
):
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    filled.topics["orders"].leaders[1] = 2
    filled.stop(2)
    consumer = consumer_of(auto_offset_reset=reset)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
    assert consumer.assignment == BOTH
    consumer.commit()
    assert ("orders", 1) not in group.committed
    assert caplog.text.count("orders-1: read once its leader tells where to begin") == 1
    filled.topics["orders"].move(1, 1)
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("longest_s", [0.1, 60])
def test_how_long_a_leader_is_left_alone_that_said_nothing(
    filled, group, consumer_of, monkeypatch, longest_s
):
    """Most of the time goes to the others, but not for minutes: it may have come back."""
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(patience, "LONGEST_REST_S", longest_s)
    filled.topics["orders"].leaders[1] = 2
    filled.on("ListOffsets", STALL, node=2)
    consumer = consumer_of(request_timeout_ms=300)
    assert {number for number, _ in poll_rows(consumer, 20)} == {0}
    looks = len(filled.asked("ListOffsets", node=2))
    poll_until(
        consumer, lambda: len(filled.asked("ListOffsets", node=2)) > looks, "another look at it"
    )
    poll_until(consumer, lambda: not consumer._reading._look_again.has_passed, "its end")
    expected_s = longest_s if longest_s < 1 else 3.0
    assert expected_s <= consumer._reading._look_again.timeout_s < expected_s + 1.5
    filled.on("ListOffsets", DEFAULT, node=2)
    assert {number for number, _ in poll_rows(consumer, 20)} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("leader", [1, 2])
def test_a_leader_that_is_back_is_asked_soon_however_long_it_said_nothing(
    filled, group, consumer_of, monkeypatch, leader
):
    """Or the one that leads by then: what they have was left unread for half a minute."""
    monkeypatch.setattr(patience, "FIRST_S", 0.5)
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(patience, "SHORT_S", 0.1)
    monkeypatch.setattr(patience, "_MOST_OF_THE_TIME", 20)
    filled.topics["orders"].leaders[1] = 2
    filled.on("ListOffsets", STALL, node=2)
    consumer = consumer_of()
    assert {number for number, _ in poll_rows(consumer, 20)} == {0}
    poll_until(consumer, lambda: consumer._reading._patience.long_s > 1, "a long look in vain")
    if leader == 2:
        filled.on("ListOffsets", DEFAULT, node=2)
    else:
        filled.topics["orders"].move(1, leader)
    assert {number for number, _ in poll_rows(consumer, 20)} == {1}


@pytest.mark.slow
def test_a_leader_that_says_nothing_holds_up_no_other_for_long(
    filled, group, consumer_of, monkeypatch
):
    monkeypatch.setattr(patience, "FIRST_S", 0.05)
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    filled.topics["orders"].leaders[1] = 2
    filled.on("ListOffsets", STALL, node=2)
    consumer = consumer_of(request_timeout_ms=60_000, default_api_timeout_ms=90_000)
    assert {number for number, _ in poll_rows(consumer, 20)} == {0}
    poll_until(consumer, lambda: len(filled.asked("ListOffsets", node=2)) > 2, "more looks at it")


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])  # which of the two is asked first is left to chance
def test_a_leader_that_says_nothing_to_who_connects_keeps_no_other_from_beginning(
    filled, group, consumer_of, monkeypatch, number
):
    monkeypatch.setattr(patience, "FIRST_S", 0.05)
    filled.topics["orders"].leaders[number] = 2
    filled.on("ApiVersions", STALL, node=2)
    consumer = consumer_of(socket_connection_setup_timeout_ms=200)
    assert {number for number, _ in poll_rows(consumer, 20)} == {1 - number}


@pytest.mark.slow
def test_a_leader_that_takes_no_connection_any_more_holds_up_no_other_for_long(
    filled, group, consumer_of, monkeypatch
):
    """Every other ten seconds, or twenty, nothing was read of anybody."""
    monkeypatch.setattr(patience, "FIRST_S", 0.2)
    filled.topics["orders"].leaders[1] = 2
    consumer = consumer_of(default_api_timeout_ms=60_000)
    poll_rows(consumer, 40)
    filled.on("ApiVersions", STALL, node=2)
    filled.on("Fetch", close(), DEFAULT, node=2)
    for offset in range(20, 30):
        filled.logs["orders", 0].append(b"more")
        began = time.monotonic()
        assert poll_rows(consumer, 1) == [(0, offset)]
        assert time.monotonic() - began < 2  # socket.connection.setup.timeout.ms is ten seconds
        time.sleep(0.2)
    filled.on("ApiVersions", DEFAULT, node=2)
    filled.logs["orders", 1].append(b"more")
    assert poll_rows(consumer, 1) == [(1, 20)]


@pytest.mark.slow
def test_a_leader_that_is_slow_to_say_where_to_begin_is_waited_for_in_the_end(
    filled, group, consumer_of, monkeypatch
):
    monkeypatch.setattr(patience, "FIRST_S", 0.05)
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(patience, "_MOST_OF_THE_TIME", 0.1)
    filled.topics["orders"].leaders[1] = 2

    def slow(call):
        time.sleep(0.5)
        return list_offsets(filled, call)

    filled.on("ListOffsets", slow, node=2)
    assert {number for number, _ in poll_rows(consumer_of(), 40)} == {0, 1}


@pytest.mark.slow
def test_a_partition_that_loses_its_leader_as_it_is_to_begin_is_read_later(
    filled, group, consumer_of, monkeypatch
):
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.01)
    filled.topics["orders"] = FakeTopic(topic_id_of("orders"), [NOBODY, NOBODY, 1], [0, 0, 0])
    filled.logs["orders", 2] = FakeLog().fill(2)
    consumer = consumer_of()
    assert poll_rows(consumer, 20) == [(2, offset) for offset in range(20)]
    leaders = filled.topics["orders"].leaders

    def lose_the_first(call):  # offsets are asked for between the two looks at who leads
        leaders[0] = NOBODY
        return group.fetch(call)

    filled.on("OffsetFetch", lose_the_first)
    leaders[:2] = [1, 1]
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    filled.on("OffsetFetch", group.fetch)
    leaders[0] = 1
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
def test_where_nobody_leads_any_partition_the_wait_ends_with_an_error(filled, group, consumer_of):
    filled.topics["orders"].leaders[:] = [NOBODY, NOBODY]
    # Two tries, the second well before the end: one that the end cuts off would be told, too.
    times = {"retry_backoff_ms": 400, "retry_backoff_max_ms": 400}
    consumer = consumer_of(default_api_timeout_ms=600, **times)
    with pytest.raises(BrokerError, match=r"orders-[01].*LEADER_NOT_AVAILABLE"):
        poll_until(consumer, lambda: False, "the error")
    filled.topics["orders"].leaders[:] = [1, 1]
    assert len(poll_rows(consumer, 40)) == 40


@pytest.mark.slow
def test_what_failed_and_was_read_since_begins_to_fail_anew(filled, group, consumer_of):
    """Two bad moments are no failure that has lasted from the first to the second."""
    consumer = consumer_of(default_api_timeout_ms=400)
    poll_rows(consumer, 40)
    for _ in range(2):
        asked = len(filled.asked("Fetch"))
        filled.on("Fetch", close(), DEFAULT)
        poll_until(consumer, lambda since=asked: len(filled.asked("Fetch")) > since + 2, "Fetches")
        for partition in range(2):
            filled.logs["orders", partition].append(b"more")
        poll_rows(consumer, 2)
        time.sleep(0.5)


@pytest.mark.slow
def test_an_offset_that_is_gone_is_reset(filled, group, consumer_of):
    filled.logs["orders", 0].start = 12
    group.committed |= {("orders", 0): (3, ""), ("orders", 1): (20, "")}
    assert poll_rows(consumer_of(), 8) == [(0, offset) for offset in range(12, 20)]


@pytest.mark.slow
def test_an_offset_beyond_the_end_is_reset(filled, group, consumer_of):
    group.committed |= {("orders", 0): (25, ""), ("orders", 1): (20, "")}
    assert poll_rows(consumer_of(), 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize(("reset", "expected"), [("earliest", 8), ("latest", 0)])
def test_offsets_that_are_gone_in_many_partitions_are_asked_for_together(
    brokers, group, consumer_of, reset, expected
):
    """With a round trip or two for each a poll of thousands takes longer than a member has."""
    many = [TopicPartition("many", number) for number in range(250)]
    for item in many:
        brokers.logs[item].fill(2).start = 12
    group.committed |= dict.fromkeys(many, (3, ""))
    consumer = consumer_of(["many"], auto_offset_reset=reset)
    at_the_end = dict.fromkeys(many, 20)
    rows = poll_until(consumer, lambda: consumer.positions == at_the_end, "the end")
    assert len(rows) == expected * len(many)
    assert len(brokers.asked("ListOffsets")) <= 2


@pytest.mark.slow
def test_many_partitions_of_a_topic_made_again_are_asked_about_together(
    brokers, group, consumer_of
):
    many = [TopicPartition("many", number) for number in range(250)]
    group.committed |= dict.fromkeys(many, (10, ""))
    for item in many:
        brokers.logs[item].fill(1)
    consumer = consumer_of(["many"])
    poll_until(consumer, lambda: brokers.asked("Fetch"), "a fetch")
    with brokers.at_once():
        for item in many:
            brokers.logs[item] = FakeLog().fill(3)
        before = brokers.topics["many"]
        brokers.topics["many"] = FakeTopic(topic_id_of("again"), before.leaders, before.epochs)
    poll_rows(consumer, 30 * len(many))
    assert consumer.positions == dict.fromkeys(many, 30)
    assert len(brokers.asked("ListOffsets")) <= 2


@pytest.mark.slow
def test_an_old_leader_that_has_been_away_resets_nothing(filled, group, consumer_of, caplog):
    """It names itself and its old end for a moment: the position lies beyond that."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    lead_in_the_past(filled, "orders", end=10)
    out_of_range = (Answered(partition_index=part, error_code=1) for part in range(2))
    filled.on("Fetch", answered(*out_of_range), node=1)
    consumer = consumer_of()
    assert poll_rows(consumer, 5) == [(0, offset) for offset in range(15, 20)]
    assert not any("reading goes on at" in text for text in caplog.messages)


@pytest.mark.slow
def test_words_of_old_leaders_do_not_add_up(filled, group, consumer_of, caplog):
    """Each is contradicted by the real leader: the third one is no more than the first."""
    group.committed |= {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    consumer = consumer_of()
    poll_until(consumer, lambda: filled.asked("Fetch"), "a fetch")
    for offset in range(20, 24):
        out_of_range = (Answered(partition_index=part, error_code=1) for part in range(2))
        filled.on("Fetch", answered(*out_of_range), DEFAULT)
        asked = len(filled.asked("Fetch"))
        poll_until(consumer, lambda at=asked: len(filled.asked("Fetch")) > at + 2, "an answer")
        filled.logs["orders", 0].append(b"later")
        assert poll_rows(consumer, 1) == [(0, offset)]
    assert not any("reading goes on at" in text for text in caplog.messages)


def truncate(brokers):
    """A new leader of the first partition has offsets up to 10 only, and writes 20 records."""
    log = brokers.logs["orders", 0]
    log.cut_off(10)
    brokers.topics["orders"].epochs[0] = log.epoch
    log.fill(2)


def make_again(brokers):
    """`orders` is deleted and made again, with 30 records in its first partition."""
    brokers.make_again("orders", 2)
    brokers.logs["orders", 0].fill(3)


@pytest.fixture
def first_read(filled, group, consumer_of):
    """Opens a member that has read all 20 records of the first partition."""
    group.committed |= {("orders", 0): (0, ""), ("orders", 1): (20, "")}

    def open_consumer(**properties):
        consumer = consumer_of(**properties)
        assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
        return consumer

    return open_consumer


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_what_is_written_after_a_truncation_is_read(filled, group, first_read, reset):
    consumer = first_read(auto_offset_reset=reset)
    truncate(filled)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]
    consumer.close()
    assert group.committed["orders", 0] == (30, "")


@pytest.mark.slow
@pytest.mark.parametrize("times_before", [0, 1, 3])
def test_a_truncation_is_noticed_behind_the_word_of_an_old_leader(filled, first_read, times_before):
    """It has no such offset, and another leader has: that one is still to compare the epoch."""
    consumer = first_read()

    def out_of_range(call):
        (topic,) = call.request.topics  # which may be of one partition alone
        asked = (
            Answered(partition_index=part.partition, error_code=1) for part in topic.partitions
        )
        return answered(*asked)(call)

    for _ in range(times_before):  # where a leader has had it since
        asked = len(filled.asked("Fetch"))
        filled.on("Fetch", out_of_range, DEFAULT)
        poll_until(consumer, lambda asked=asked: len(filled.asked("Fetch")) > asked + 3, "answers")
    with filled.at_once():  # else the leader itself may be asked between the two
        truncate(filled)
        filled.on("Fetch", out_of_range, DEFAULT)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_a_truncation_moves_the_position_back_before_anything_is_read(filled, first_read):
    consumer = first_read()
    truncate(filled)
    filled.logs["orders", 0].batches = filled.logs["orders", 0].batches[:1]
    poll_until(consumer, lambda: consumer.positions[FIRST] == 10, "the position")


@pytest.mark.slow
def test_an_interrupt_of_the_poll_that_notices_a_truncation_undoes_nothing_of_that(
    filled, first_read, monkeypatch
):
    consumer = first_read()
    next_batch = reading.Reading.next_batch

    def interrupted(self, deadline):
        if next_batch(self, deadline) is not None:
            raise KeyboardInterrupt

    with filled.at_once():
        truncate(filled)
        monkeypatch.setattr(reading.Reading, "next_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(PATIENCE_S)
    monkeypatch.undo()
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_without_a_policy_a_truncation_is_an_error_at_every_poll(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    truncate(filled)
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"orders-0: .*20 are gone.*offset 10 only.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert FIRST not in consumer.positions


@pytest.mark.slow
@pytest.mark.parametrize(("reset", "offsets"), [("earliest", range(31)), ("latest", [30])])
def test_a_topic_made_again_is_read_from_where_the_policy_says(
    filled, group, first_read, reset, offsets
):
    consumer = first_read(auto_offset_reset=reset)
    make_again(filled)
    rows = poll_until(consumer, lambda: consumer.positions == {FIRST: 30, SECOND: 0}, "the end")
    filled.logs["orders", 0].append(b"later")
    rows += poll_rows(consumer, 1)
    assert rows == [(0, offset) for offset in offsets]
    consumer.close()
    assert group.committed == {("orders", 0): (31, ""), ("orders", 1): (0, "")}


@pytest.mark.slow
def test_an_offset_that_was_committed_in_the_topic_before_is_committed_in_the_new_one(
    filled, group, first_read
):
    """What a group has committed goes with a topic that is deleted."""
    consumer = first_read(auto_commit_interval_ms=0)
    poll_until(consumer, lambda: group.committed["orders", 0] == (20, ""), "a commit")
    consumer.poll(0.1)
    with filled.at_once():
        make_again(filled)
        filled.logs["orders", 0] = FakeLog().fill(2)
        group.committed.clear()
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
    consumer.close()
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.slow
def test_what_is_paused_of_a_topic_made_again_is_read_from_where_the_policy_says(
    filled, group, first_read
):
    """Its other partition shows that: the new topic's id is not for a position in the old one."""
    consumer = first_read(enable_auto_commit="false")
    group.committed.clear()  # as brokers forget what was committed in a topic that is deleted
    consumer.pause({FIRST})
    make_again(filled)
    poll_until(consumer, lambda: consumer.positions.get(SECOND) == 0, "the new topic")
    consumer.commit()
    assert group.committed == {("orders", 1): (0, "")}
    consumer.resume({FIRST})
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_broker_that_names_a_deleted_topic_moves_no_position(filled, first_read, is_made_again):
    consumer, read_to = first_read(), 20
    if is_made_again:
        make_again(filled)
        read_to = 30
        poll_until(consumer, lambda: consumer.positions[FIRST] == read_to, "the end")
    topic, asked = filled.topics["orders"], len(filled.asked("Metadata"))

    def behind(call):
        now, topic.topic_id = topic.topic_id, topic_id_of("orders before")
        try:
            return metadata(filled, call)
        finally:
            topic.topic_id = now

    filled.on("Metadata", behind, behind, DEFAULT)
    filled.on(
        "Fetch",
        answered(*(Answered(partition_index=part, error_code=6) for part in range(2))),
        DEFAULT,
    )
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > asked, "metadata")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, read_to)]
    filled.logs["orders", 0].append(b"later still")
    assert poll_rows(consumer, 1) == [(0, read_to + 1)]


@pytest.mark.slow
def test_without_a_policy_a_topic_made_again_is_an_error_at_every_poll(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    make_again(filled)
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"orders-[01]: .*made again.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions == {}


@pytest.mark.slow
def test_without_a_policy_each_partition_of_a_topic_made_again_is_to_be_sought(
    filled, group, first_read
):
    consumer = first_read(auto_offset_reset="none")
    make_again(filled)
    filled.logs["orders", 1].fill(3)
    for _ in range(2):
        with pytest.raises(BrokerError, match="made again"):
            poll_until(consumer, lambda: False, "the error")
    consumer.seek(FIRST, 0)
    rows, told = [], []
    for _ in range(30):
        try:
            rows += rows_of(consumer.poll(0.05))
        except BrokerError as error:
            told.append(str(error))
    assert len(told) > 2
    assert all("orders-1: " in text and "made again" in text for text in told)
    assert rows == [(0, offset) for offset in range(30)]
    consumer.commit()
    assert group.committed == {("orders", 0): (30, ""), ("orders", 1): (20, "")}
    consumer.seek(SECOND, 0)
    assert poll_rows(consumer, 30) == [(1, offset) for offset in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "left"), [(truncate, {SECOND}), (make_again, set())])
def test_positions_that_are_an_error_are_not_committed(filled, group, first_read, change, left):
    consumer = first_read(auto_offset_reset="none")
    change(filled)
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    group.committed.clear()
    consumer.close()
    assert {TopicPartition(*item) for item in group.committed} == left


@pytest.mark.slow
def test_positions_that_are_an_error_are_not_told(filled, group, first_read):
    """Whoever commits what is told (a producer's transaction does) is not to pass over records."""
    consumer = first_read(auto_offset_reset="none", enable_auto_commit="false")
    truncate(filled)
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    consumer.commit(consumer.positions)
    assert group.committed == {("orders", 0): (0, ""), ("orders", 1): (20, "")}


@pytest.mark.slow
def test_a_position_that_is_there_after_all_is_committed(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    log = filled.logs["orders", 0]
    log.start = 21
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    log.start = 0
    log.append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    consumer.close()
    assert group.committed["orders", 0] == (21, "")


@pytest.mark.slow
def test_a_topic_made_again_is_noticed_after_an_error_of_the_one_before(filled, group, first_read):
    consumer = first_read()
    log = filled.logs["orders", 0].fill(1)
    whole = log.batches[-1]
    log.batches[-1] = whole._replace(data=whole.data[:-1] + bytes([whole.data[-1] ^ 1]))
    with pytest.raises(CorruptRecords, match="orders-0"):
        poll_until(consumer, lambda: False, "the error")
    make_again(filled)
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


def is_rebalancing(brokers):
    """Return once a member knows that its group shares out anew; it has not polled since."""
    beats(brokers, REBALANCE_IN_PROGRESS)
    brokers.wait_for_call("Heartbeat", len(brokers.asked("Heartbeat")) + 3)


@pytest.mark.slow
def test_a_topic_made_again_is_noticed_after_a_rebalance(filled, group, first_read):
    consumer = first_read()
    make_again(filled)
    is_rebalancing(filled)
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


@pytest.mark.slow
def test_a_truncation_is_noticed_after_a_rebalance(filled, group, first_read):
    consumer = first_read()
    truncate(filled)
    is_rebalancing(filled)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_truncation_is_noticed_by_whoever_goes_on(filled, group, first_read, reset, consumer_of):
    """The leader epoch is committed with the offset (KIP-320)."""
    first_read().close()
    assert group.epochs["orders", 0] == (20, filled.logs["orders", 0].epoch)
    truncate(filled)
    rows = poll_rows(consumer_of(auto_offset_reset=reset), 20)
    assert rows == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_a_truncation_is_an_error_to_whoever_goes_on_without_a_policy(
    filled, group, first_read, consumer_of
):
    first_read().close()
    truncate(filled)
    consumer = consumer_of(auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(BrokerError, match=r"orders-0: .*20 are gone.*offset 10 only.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert FIRST not in consumer.positions
    consumer.close()
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.slow
@pytest.mark.parametrize(("change", "first_offset"), [(truncate, 10), (make_again, 0)])
def test_the_epoch_of_records_that_are_gone_is_not_committed_with_others(
    filled, group, first_read, consumer_of, monkeypatch, change, first_offset
):
    """What is read anew comes by the same offset, in the middle of what a leader answers."""
    consumer = first_read(enable_auto_commit="false")
    monkeypatch.setattr(arrow, "TOPIC_BYTES", 10 * len("orders"))
    monkeypatch.setattr(arrow._topics, "_kept", None)
    change(filled)
    read = range(first_offset, 20)
    assert poll_rows(consumer, len(read)) == [(0, offset) for offset in read]
    consumer.commit()
    assert group.epochs["orders", 0] == (20, -1)
    consumer.close()
    assert poll_rows(consumer_of(), 10) == [(0, offset) for offset in range(20, 30)]


def test_positions_are_told_with_their_leader_epochs_where_these_are_known(filled, first_read):
    consumer = first_read()
    assert consumer.committable == {
        FIRST: CommittedOffset(20, leader_epoch=0),
        SECOND: CommittedOffset(20),
    }


@pytest.mark.slow
def test_an_offset_committed_without_its_epoch_is_believed(filled, first_read, consumer_of):
    consumer = first_read(enable_auto_commit="false")
    consumer.commit({FIRST: 20})
    consumer.close()
    truncate(filled)
    assert poll_rows(consumer_of(), 10) == [(0, offset) for offset in range(20, 30)]


@pytest.mark.slow
def test_an_epoch_that_the_leader_does_not_know_is_forgotten(filled, first_read, consumer_of):
    """As of an offset that was committed before the topic was made again."""
    consumer = first_read(enable_auto_commit="false")
    consumer.commit({FIRST: CommittedOffset(15, leader_epoch=77)})
    consumer.close()
    assert poll_rows(consumer_of(), 5) == [(0, offset) for offset in range(15, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("waits", [True, False])
def test_an_offset_that_is_reached_again_is_committed_with_its_new_epoch(
    filled, group, first_read, waits
):
    consumer = first_read(enable_auto_commit="false")
    consumer.commit(wait=waits)
    truncate(filled)
    filled.logs["orders", 0].cut_off(10)
    filled.logs["orders", 0].fill(1)
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10, 20)]
    consumer.commit()
    assert group.epochs["orders", 0] == (20, filled.logs["orders", 0].epoch)


@pytest.mark.slow
def test_an_offset_that_was_given_is_not_committed_again(filled, group, first_read):
    consumer = first_read()
    consumer.commit({FIRST: CommittedOffset(20, "by me")})
    consumer.close()
    assert group.committed["orders", 0] == (20, "by me")


@pytest.mark.slow
def test_a_later_epoch_that_another_member_has_committed_is_believed(filled, group, first_read):
    """It was told that the log was cut off, and has read what came in the place of that."""
    consumer = first_read(enable_auto_commit="false")
    truncate(filled)
    group.committed["orders", 0], group.epochs["orders", 0] = (20, ""), (20, 1)
    is_rebalancing(filled)
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(20, 30)]


@pytest.mark.slow
def test_an_offset_that_another_member_has_committed_is_believed(filled, group, first_read):
    """It may have seen already that the topic was made again."""
    consumer = first_read()
    make_again(filled)
    filled.logs["orders", 1].fill(1)

    def join(call):
        group.committed["orders", 1] = (5, "")
        return group.join(call)

    filled.on("JoinGroup", join)
    is_rebalancing(filled)
    rows = poll_rows(consumer, 35)
    assert sorted(rows) == [(0, offset) for offset in range(30)] + [(1, at) for at in range(5, 10)]


@pytest.mark.slow
def test_a_commit_after_the_generation_is_refused_and_says_why(filled, group, consumer_of, noted):
    consumer = consumer_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(ILLEGAL_GENERATION))
    with pytest.raises(BrokerError, match=r"ILLEGAL_GENERATION.*max\.poll\.interval\.ms"):
        consumer.commit()
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert ("lost", BOTH) in noted


@pytest.mark.slow
def test_who_is_no_member_any_more_does_not_commit_from_outside(filled, group, consumer_of):
    consumer = consumer_of(max_poll_interval_ms=200, enable_auto_commit="false")
    poll_rows(consumer, 40)
    filled.wait_for_call("LeaveGroup")
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        consumer.commit()
    assert not filled.asked("OffsetCommit")


@pytest.mark.slow
def test_commits_arrive_in_their_order_and_tell_how_they_went(filled, group, consumer_of):
    told = []
    consumer = consumer_of(listeners={"on_commit": lambda *said: told.append(said)})
    poll_until(consumer, lambda: consumer.assignment, "an assignment")
    for offset in range(1, 11):
        consumer.commit({FIRST: offset}, wait=False)
    consumer.commit({FIRST: CommittedOffset(11, "the end")})
    assert group.committed["orders", 0] == (11, "the end")
    assert [(offsets[FIRST], error) for offsets, error in told] == [
        (offset, None) for offset in range(1, 11)
    ]
    filled.on("OffsetCommit", committing(3))
    consumer.commit({FIRST: 12}, wait=False)
    poll_until(consumer, lambda: len(told) == 11, "the failure")
    assert told[-1][0] == {FIRST: 12}
    assert told[-1][1].error.name == "UNKNOWN_TOPIC_OR_PARTITION"


def committing_short_texts(group, most=10):
    """An OffsetCommit answer that refuses partitions with longer ones, and notes the rest."""

    def outcome(topic, item):
        if len(item.committed_metadata) > most:
            return OFFSET_METADATA_TOO_LARGE
        group.committed[topic, item.partition_index] = (item.committed_offset, "")
        return 0

    return committing_each(outcome)


def held_up(brokers, *answers):
    """Has commits tried again until they are let go, so that those given meanwhile go together."""
    let_go = threading.Event()
    left = list(answers)

    def answer(call):
        if not let_go.is_set():
            return committing(COORDINATOR_NOT_AVAILABLE)(call)
        return (left.pop(0) if len(left) > 1 else left[0])(call)

    brokers.on("OffsetCommit", answer)
    return let_go


def test_a_commit_that_is_refused_ends_no_membership(filled, coordinator, member_of):
    consumer = member_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(OFFSET_METADATA_TOO_LARGE))
    with pytest.raises(BrokerError, match="OFFSET_METADATA_TOO_LARGE"):
        consumer.commit({FIRST: 5})
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    assert consumer.assignment == BOTH


def test_a_commit_by_an_instance_that_was_taken_over_ends_its_membership(
    filled, coordinator, member_of
):
    consumer = member_of(enable_auto_commit="false", group_instance_id="till-1")
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(FENCED_INSTANCE_ID))
    for call in (lambda: consumer.commit({FIRST: 5}), lambda: consumer.poll(0)):
        with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
            call()


@pytest.mark.slow
def test_a_long_poll_tells_what_becomes_of_commits_while_it_waits(filled, group, consumer_of):
    class Told(Exception):
        pass

    def tell(offsets, error):
        raise Told(offsets, error)

    consumer = consumer_of(listeners={"on_commit": tell}, enable_auto_commit="false")
    poll_rows(consumer, 40)
    let_go = held_up(filled, group.commit)
    consumer.commit({FIRST: 1}, wait=False)
    threading.Timer(0.1, let_go.set).start()
    with pytest.raises(Told) as told:
        consumer.poll(PATIENCE_S)
    assert told.value.args == ({FIRST: 1}, None)


@pytest.mark.slow
def test_a_refused_commit_takes_none_with_it_that_waited_beside_it(filled, group, consumer_of):
    told = []
    consumer = consumer_of(
        listeners={"on_commit": lambda *said: told.append(said)}, enable_auto_commit="false"
    )
    poll_rows(consumer, 40)
    let_go = held_up(filled, committing_short_texts(group))
    consumer.commit({FIRST: 1}, wait=False)
    consumer.commit({FIRST: 2, SECOND: CommittedOffset(5, "x" * 11)}, wait=False)
    consumer.commit({FIRST: 3}, wait=False)
    consumer.commit({SECOND: 6}, wait=False)
    consumer.commit({SECOND: CommittedOffset(7, "x" * 11)}, wait=False)
    let_go.set()
    consumer.commit({FIRST: 4})
    assert group.committed == {("orders", 0): (4, ""), ("orders", 1): (6, "")}
    assert [(offsets, getattr(error, "code", None)) for offsets, error in told] == [
        ({FIRST: 1}, None),
        ({FIRST: 2, SECOND: 5}, OFFSET_METADATA_TOO_LARGE),
        ({FIRST: 3}, None),
        ({SECOND: 6}, None),
        ({SECOND: 7}, OFFSET_METADATA_TOO_LARGE),
    ]


@pytest.mark.slow
def test_the_error_of_a_commit_that_goes_apart_has_what_was_committed(filled, group, consumer_of):
    told = []
    consumer = consumer_of(
        listeners={"on_commit": lambda *said: told.append(said)}, enable_auto_commit="false"
    )
    poll_rows(consumer, 40)
    let_go = held_up(filled, committing_short_texts(group))
    consumer.commit({FIRST: 2, SECOND: CommittedOffset(5, "x" * 11)}, wait=False)
    consumer.commit({FIRST: 3}, wait=False)
    let_go.set()
    consumer.commit({FIRST: 4})
    ((_, refused), (_, well)) = told
    assert (set(refused.usable), well) == ({("g", FIRST)}, None)


@pytest.mark.slow
@pytest.mark.parametrize("end", [ILLEGAL_GENERATION, COORDINATOR_NOT_AVAILABLE])
def test_the_error_of_a_commit_that_goes_apart_in_vain_has_what_was_committed(
    filled, group, consumer_of, end
):
    """Its member is none any more by then, or its time is over."""
    settings = {"enable_auto_commit": "false", "default_api_timeout_ms": 1500}
    consumer = consumer_of(**settings)
    poll_rows(consumer, 40)

    def fail(call):
        if end == ILLEGAL_GENERATION:
            consumer._membership.lost("its session was over")
        return committing(COORDINATOR_NOT_AVAILABLE)(call)

    let_go = held_up(filled, committing_short_texts(group), fail)
    consumer.commit({FIRST: 2, SECOND: CommittedOffset(5, "x" * 11)}, wait=False)
    consumer.commit({FIRST: 3}, wait=False)
    first, _ = consumer._commits._unwaited
    let_go.set()
    consumer._membership.wait_for(first, Deadline.after(PATIENCE_S))
    assert set(first.error.usable) == {("g", FIRST)}


@pytest.mark.slow
def test_the_error_of_a_commit_that_came_late_in_part_has_the_rest(filled, group, consumer_of):
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    let_go = held_up(filled, group.commit)
    consumer.commit({FIRST: 2, SECOND: 5}, wait=False)
    filled.wait_for_call("OffsetCommit")
    consumer._membership.give_up(frozenset({SECOND}))
    let_go.set()
    (late,) = consumer._commits._unwaited
    consumer._membership.wait_for(late, Deadline.after(PATIENCE_S))
    assert late.error.code == ILLEGAL_GENERATION
    assert set(late.error.usable) == {("g", FIRST)}
    assert group.committed == {("orders", 0): (2, "")}


@pytest.mark.slow
def test_what_was_committed_is_not_put_back_by_what_goes_again(filled, group, consumer_of):
    """A crash between two requests would have the group read it again."""
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    seen = []
    refuse = committing_short_texts(group)

    def answer(call):
        said = refuse(call)
        seen.append(group.committed["orders", 0][0])
        return said

    let_go = held_up(filled, answer)
    consumer.commit({FIRST: 2, SECOND: CommittedOffset(5, "x" * 11)}, wait=False)
    consumer.commit({FIRST: 3}, wait=False)
    let_go.set()
    consumer.commit({FIRST: 4})
    assert seen == sorted(seen)
    assert group.committed["orders", 0] == (4, "")


@pytest.mark.slow
def test_a_commit_that_goes_apart_is_tried_again_before_those_behind_it(filled, group, consumer_of):
    told = []
    consumer = consumer_of(
        listeners={"on_commit": lambda *said: told.append(said)}, enable_auto_commit="false"
    )
    poll_rows(consumer, 40)
    short = committing_short_texts(group)
    let_go = held_up(filled, short, committing(COORDINATOR_NOT_AVAILABLE), short)
    consumer.commit({SECOND: 5}, wait=False)
    consumer.commit({SECOND: CommittedOffset(6, "x" * 11)}, wait=False)
    let_go.set()
    consumer.commit({FIRST: 4})
    assert [error is None for _, error in told] == [True, False]
    assert group.committed == {("orders", 0): (4, ""), ("orders", 1): (5, "")}


@pytest.mark.slow
def test_offsets_of_a_topic_that_was_deleted_are_not_committed_to_its_successor(
    filled, group, first_read
):
    """A commit that is tried again may come when another topic has the name."""
    consumer = first_read(enable_auto_commit="false")
    let_go = held_up(filled, group.commit)
    consumer.commit({FIRST: 20}, wait=False)
    filled.wait_for_call("OffsetCommit")
    make_again(filled)
    ids = {"orders": filled.topics["orders"].topic_id}
    until_then = Deadline.after(PATIENCE_S)
    new = consumer._membership.commit({FIRST: CommittedOffset(3)}, ids, until_then)
    let_go.set()
    consumer._membership.wait_for(new, until_then)
    (old,) = consumer._commits._unwaited
    assert "UNKNOWN_TOPIC_ID" in str(old.error)
    assert new.error is None
    assert group.committed["orders", 0] == (3, "")


def commit_without_a_pause(brokers, consumer):
    """From now on each commit that is answered has another one behind it."""

    def answer(call):
        consumer._membership.commit({FIRST: CommittedOffset(1)}, {}, Deadline.after(5))
        return committing(0)(call)

    brokers.on("OffsetCommit", answer)
    consumer.commit({FIRST: 1}, wait=False)


@pytest.mark.slow
def test_heartbeats_go_on_while_commits_never_end(filled, group, consumer_of):
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    commit_without_a_pause(filled, consumer)
    filled.wait_for_call("OffsetCommit")
    filled.wait_for_call("Heartbeat", len(filled.asked("Heartbeat")) + 3)
    filled.on("OffsetCommit", committing(0))


@pytest.mark.slow
def test_heartbeats_go_on_while_a_commit_is_tried_again(filled, group, consumer_of):
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    before = len(filled.asked("Heartbeat"))

    def answer(call):
        has_beaten = len(filled.asked("Heartbeat")) >= before + 3
        return committing(0 if has_beaten else COORDINATOR_NOT_AVAILABLE)(call)

    filled.on("OffsetCommit", answer)
    consumer.commit()
    assert len(filled.asked("OffsetCommit")) > 1


@pytest.mark.slow
def test_a_commit_that_is_tried_again_is_not_overtaken(filled, group, consumer_of):
    told = []
    consumer = consumer_of(listeners={"on_commit": lambda *said: told.append(said)})
    poll_until(consumer, lambda: consumer.assignment, "an assignment")
    later = []

    def refuse(call):
        later.append(
            consumer._membership.commit({FIRST: CommittedOffset(2)}, {}, Deadline.after(5))
        )
        return committing(COORDINATOR_NOT_AVAILABLE)(call)

    filled.on("OffsetCommit", refuse, group.commit)
    consumer.commit({FIRST: 1}, wait=False)
    poll_until(consumer, lambda: told, "the first commit")
    consumer._membership.wait_for(later[0], Deadline.after(5))
    assert told == [({FIRST: 1}, None)]
    assert group.committed["orders", 0] == (2, "")


@pytest.mark.slow
def test_a_commit_that_never_goes_is_an_error_in_time_and_the_next_one_goes(
    filled, group, consumer_of
):
    told = []
    consumer = consumer_of(
        default_api_timeout_ms=500, listeners={"on_commit": lambda *said: told.append(said)}
    )
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(COORDINATOR_NOT_AVAILABLE))
    consumer.commit({FIRST: 1}, wait=False)
    with pytest.raises((BrokerError, DeadlineExceeded), match=r"COORDINATOR_NOT_AV|commit offsets"):
        consumer.commit({FIRST: 2})
    poll_until(consumer, lambda: told, "the first commit")
    ((offsets, error),) = told
    assert offsets == {FIRST: 1}
    assert "COORDINATOR_NOT_AVAILABLE" in str(error)
    filled.on("OffsetCommit", group.commit)
    consumer.commit({FIRST: 3})
    assert group.committed["orders", 0] == (3, "")


@pytest.mark.slow
def test_a_commit_does_not_wait_for_those_that_were_given_up(filled, group, consumer_of):
    slow = dict.fromkeys(("retry_backoff_ms", "retry_backoff_max_ms"), 5000)
    consumer = consumer_of(default_api_timeout_ms=1000, **slow)
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(COORDINATOR_NOT_AVAILABLE), group.commit)
    with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
        consumer.commit({FIRST: 1})
    consumer.commit({FIRST: 2})
    assert group.committed["orders", 0] == (2, "")


@pytest.mark.slow
def test_who_commits_without_polling_leaves_all_the_same(filled, group, consumer_of):
    consumer = consumer_of(max_poll_interval_ms=200, enable_auto_commit="false")
    poll_rows(consumer, 40)
    commit_without_a_pause(filled, consumer)
    filled.wait_for_call("LeaveGroup")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ({FIRST: 5.0}, r"offset of orders-0.* 5\.0"),
        ({FIRST: True}, "offset of orders-0.* True"),
        ({FIRST: -1}, "offset of orders-0.* -1"),
        ({FIRST: 2**63}, f"offset of orders-0.* {2**63}"),
        ({FIRST: CommittedOffset("5")}, "offset of orders-0.* '5'"),
        ({FIRST: (5, "")}, r"offset of orders-0.* \(5, ''\)"),
        ({"ab": 5}, "partition.* 'ab'"),
        ({("orders", 2**31): 5}, f"partition.* {2**31}"),
        ({FIRST: CommittedOffset(5, 7)}, "metadata of orders-0.* 7"),
        ({FIRST: CommittedOffset(5, "", -2)}, "leader epoch of orders-0.* -2"),
        ({FIRST: CommittedOffset(5, "", "1")}, "leader epoch of orders-0.* '1'"),
        ({("orders",): 5}, r"partition.* \('orders',\)"),
        ({("orders", "0"): 5}, r"partition.* \('orders', '0'\)"),
    ],
    ids=str,
)
def test_offsets_that_cannot_be_committed_are_named(filled, group, consumer_of, offsets, text):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    with pytest.raises(ConfigError, match=text):
        consumer.commit(offsets)
    assert not filled.asked("OffsetCommit")


@pytest.mark.slow
def test_a_plain_tuple_names_a_partition(filled, group, consumer_of):
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    consumer.commit({("orders", 0): 5, SECOND: CommittedOffset(6, "half")})
    assert group.committed == {("orders", 0): (5, ""), ("orders", 1): (6, "half")}


@pytest.mark.slow
def test_a_commit_that_fails_with_any_error_leaves_the_member_alive(
    filled, group, consumer_of, monkeypatch
):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    with monkeypatch.context() as patched:
        patched.setattr(consumer._keeper._coordinator, "commit", divide_by_zero)
        with pytest.raises(LocalProtocolError, match=r"commit.*ZeroDivisionError"):
            consumer.commit({FIRST: 5})
    consumer.commit({FIRST: 7})
    assert group.committed["orders", 0] == (7, "")
    consumer.poll(0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_commit_that_nobody_takes_any_more_is_refused_at_once(
    filled, group, consumer_of, monkeypatch
):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    monkeypatch.setattr(consumer._keeper, "_keep_time", divide_by_zero)
    consumer._keeper._thread.join(PATIENCE_S)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match=r"keeping the membership.*ZeroDivisionError"):
            consumer.commit({FIRST: 5})
    assert not filled.asked("OffsetCommit")


@pytest.mark.slow
def test_commits_that_nobody_answers_hold_close_up_for_one_time_out(filled, group, consumer_of):
    timeout_s = 1.5
    times = {"default_api_timeout_ms": 1500, "request_timeout_ms": 1500}
    consumer = consumer_of(**times)
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", STALL)
    consumer.commit({FIRST: 1}, wait=False)
    began = time.monotonic()
    with suppress(DeadlineExceeded):  # unless the commit's own time was over first
        consumer.close()
    assert time.monotonic() - began < 1.7 * timeout_s


@pytest.mark.slow
def test_a_commit_that_is_waited_for_has_not_gone_because_another_is_under_way(
    filled, group, consumer_of
):
    consumer = consumer_of(default_api_timeout_ms=1000, request_timeout_ms=1000)
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", STALL)
    consumer.commit(wait=False)
    with pytest.raises(DeadlineExceeded):
        consumer.commit()


@pytest.mark.slow
def test_a_commit_says_where_the_positions_are_whatever_was_committed_last(
    filled, group, consumer_of
):
    """A producer's transaction may have moved the group's offsets meanwhile."""
    consumer = consumer_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    consumer.commit()
    group.committed["orders", 0] = (30, "")
    consumer.commit()
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.slow
def test_a_long_poll_without_partitions_keeps_the_membership(brokers, consumer_of):
    FakeGroup(brokers, Subscriber("a", ["orders"]), Subscriber("b", ["orders"]))
    consumer = consumer_of(max_poll_interval_ms=600)
    assert consumer.poll(1.2) is None
    assert consumer.assignment == frozenset()
    assert len(brokers.asked("SyncGroup")) == 1
    assert not brokers.asked("LeaveGroup")


@pytest.mark.slow
def test_a_long_poll_of_brokers_that_hang_up_keeps_the_membership(brokers, group, consumer_of):
    brokers.on("Fetch", close())
    consumer = consumer_of(max_poll_interval_ms=1000)
    assert consumer.poll(2) is None
    assert not brokers.asked("LeaveGroup")


@pytest.mark.slow
def test_damaged_records_are_an_error_at_every_poll_and_stay_unread(filled, group, consumer_of):
    whole = filled.logs["orders", 0].batches[1]
    damaged = whole.data[:-1] + bytes([whole.data[-1] ^ 1])
    filled.logs["orders", 0].batches[1] = Batch(damaged, whole.next_offset)
    group.committed["orders", 1] = (20, "")
    consumer = consumer_of()
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10)]
    for _ in range(2):
        with pytest.raises(CorruptRecords, match="orders-0"):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions[FIRST] == 10
    filled.logs["orders", 0].batches[1] = whole
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10, 20)]


@pytest.mark.slow
def test_what_gives_no_row_is_passed_beside_damaged_records(filled, group, consumer_of):
    """A position that moves over no row is not taken back with the error of another partition."""
    first, second = (filled.logs["orders", number].batches for number in range(2))
    marker = encode_batch([NewRecord(bytes(30), key=bytes(4))] * 10, attributes=1 << 5)
    first[0] = Batch(marker, first[0].next_offset)
    second[0] = Batch(second[0].data[:-1] + b"?", second[0].next_offset)
    consumer, rows = consumer_of(max_partition_fetch_bytes=300), []
    for _ in range(10):
        with suppress(CorruptRecords):
            rows += rows_of(consumer.poll(PATIENCE_S))
    assert set(rows) == {(0, offset) for offset in range(10, 20)}


@pytest.mark.slow
@pytest.mark.parametrize("auto", ["true", "false"])
def test_close_sees_commits_through_that_were_not_waited_for(filled, group, consumer_of, auto):
    told = []
    consumer = consumer_of(
        listeners={"on_commit": lambda *said: told.append(said)}, enable_auto_commit=auto
    )
    poll_rows(consumer, 40)
    consumer.commit(wait=False)
    consumer.close()
    assert group.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    assert told == [({FIRST: 20, SECOND: 20}, None)]


@pytest.mark.slow
@pytest.mark.parametrize("auto", ["true", "false"])
def test_commits_are_seen_through_before_partitions_are_given_up(
    filled, group, consumer_of, noted, auto
):
    listeners = noted.listeners() | {"on_commit": lambda *said: noted.append(("committed", said))}
    listeners["on_revoke"] = lambda own: consumer.commit(wait=False)
    consumer = consumer_of(listeners=listeners, enable_auto_commit=auto)
    poll_rows(consumer, 40)
    beats(filled, REBALANCE_IN_PROGRESS)
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert [word for word, _ in noted] == ["assigned", "committed", "assigned"]
    assert group.said()[4:6] == ["OffsetCommit", "JoinGroup"]


@pytest.fixture(params=["max.poll.records", pytest.param("names", marks=pytest.mark.slow)])
def of_few_rows(request, consumer_of, monkeypatch):
    """A consumer whose batches have at most three rows.

    It was told so, or a chunk of many small rows is cut where the topic's name would take too much
    beside them.
    """
    if request.param == "max.poll.records":
        return consumer_of(enable_auto_commit="false", max_poll_records=3)
    monkeypatch.setattr(arrow, "TOPIC_BYTES", 3 * len("orders"))
    monkeypatch.setattr(arrow._topics, "_kept", None)
    return consumer_of(enable_auto_commit="false")


def test_positions_move_with_each_of_the_batches_that_a_chunk_is(filled, group, of_few_rows):
    rows = []
    while len(rows) < 40:
        batch = of_few_rows.poll(PATIENCE_S)
        if batch is None:  # it joins yet
            continue
        rows += batch.to_pylist()
        assert batch.num_rows <= 3
        last, positions = rows[-1], of_few_rows.positions
        assert positions[TopicPartition("orders", last["partition"])] == last["offset"] + 1
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset) for partition in (0, 1) for offset in range(20)
    ]


def test_the_rest_of_a_chunk_comes_again_where_its_rows_were_not_taken(filled, group, consumer_of):
    """What was fetched is given up with the partitions, and its positions are those of rows."""
    consumer = consumer_of(enable_auto_commit="false", max_poll_records=7)
    assert poll_rows(consumer, 7) == [(0, offset) for offset in range(7)]
    consumer.commit()
    consumer.close()
    assert group.committed["orders", 0] == (7, "")
    assert poll_rows(consumer_of(max_poll_records=7), 33)[:13] == [
        (0, offset) for offset in range(7, 20)
    ]


@pytest.mark.slow
def test_rows_wait_for_the_transaction_that_holds_the_offsets(filled, group, consumer_of, caplog):
    """Its producer may have died: no error, as it ends by its time-out."""
    filled.on("OffsetFetch", unstable)
    consumer = consumer_of(default_api_timeout_ms=250)
    poll_until(consumer, lambda: "open transaction" in caplog.text, "the warning")
    assert consumer.poll(0) is None
    FakeCoordinator(filled, g={("orders", 0): (7, ""), ("orders", 1): (20, "")})
    assert poll_rows(consumer, 13) == [(0, offset) for offset in range(7, 20)]


@pytest.mark.slow
def test_a_transaction_that_holds_the_offsets_holds_no_poll_up(filled, group, consumer_of, caplog):
    filled.on("OffsetFetch", unstable)
    consumer = consumer_of(retry_backoff_ms=50)
    began = time.monotonic()
    poll_until(consumer, lambda: len(filled.asked("OffsetFetch")) == 3, "questions")
    assert consumer.poll(0) is None
    assert 0.1 < time.monotonic() - began < 2.5, "each poll is short, the coordinator has a rest"
    beats(filled, REBALANCE_IN_PROGRESS)
    poll_until(consumer, lambda: group.generation == 2, "the next generation")
    group.committed |= {("orders", 0): (7, ""), ("orders", 1): (20, "")}
    FakeCoordinator(filled, g=group.committed)
    assert rows_of(consumer.poll(PATIENCE_S)) == [(0, offset) for offset in range(7, 20)]
    assert not caplog.records


def test_offsets_that_are_held_once_more_are_a_wait_of_their_own(
    filled, group, consumer_of, monkeypatch
):
    """Else it would be said at once, and asked about as seldom as the last one at its end."""
    consumer = consumer_of(retry_backoff_ms=1, retry_backoff_max_ms=1)
    held = BrokerError(UNSTABLE_OFFSET_COMMIT, "OffsetFetch", "group g")
    answers = iter([held, held, {}, held])

    def answer(*_, **__):
        found = next(answers)
        if isinstance(found, BrokerError):
            raise found
        return found

    monkeypatch.setattr(consumer_module, "starting_positions", answer)
    found = []
    for _ in range(4):
        starts = consumer._starting_positions(frozenset({FIRST}), GroupMember("m", 1))
        found.append((starts, consumer._held and consumer._held.tries))
        time.sleep(0.01)  # more than the rest that is given to the coordinator
    assert found == [(None, 1), (None, 2), ({}, None), (None, 1)]


@pytest.mark.slow
def test_a_transaction_that_holds_offsets_keeps_no_other_partition_waiting(
    filled, group, consumer_of, monkeypatch
):
    """Of partitions that nobody led when the others began."""
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.05)
    group.committed["orders", 1] = (0, "")
    filled.topics["orders"].leaders[0] = NOBODY
    consumer = consumer_of()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    asked = len(filled.asked("OffsetFetch"))
    filled.on("OffsetFetch", unstable)
    filled.topics["orders"].leaders[0] = 1
    poll_until(consumer, lambda: len(filled.asked("OffsetFetch")) > asked, "the question")
    filled.logs["orders", 1].append(b"later")
    began = time.monotonic()
    assert poll_rows(consumer, 1) == [(1, 20)]
    assert time.monotonic() - began < 2.5
    FakeCoordinator(filled, g=group.committed)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
def test_rows_that_found_no_memory_come_again_and_are_not_committed(
    filled, group, consumer_of, monkeypatch
):
    def fail(*_):
        raise MemoryError

    consumer = consumer_of()
    with monkeypatch.context() as patched:
        patched.setattr(reading, "to_record_batches", fail)
        with pytest.raises(MemoryError):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions == {FIRST: 0, SECOND: 0}
    assert len(poll_rows(consumer, 40)) == 40


@pytest.mark.slow
def test_a_batch_that_never_comes_whole_is_an_error_while_others_go_on(filled, group, consumer_of):
    log, other = (filled.logs["orders", partition] for partition in range(2))
    other.fill(300)
    log.batches[1] = log.batches[1].longer(50_000_000)
    consumer = consumer_of(max_partition_fetch_bytes=500)
    with pytest.raises(CorruptRecords, match="orders-0, record batch at offset 10 "):
        poll_until(consumer, lambda: False, "the error")
    assert consumer.positions[FIRST] == 10
    assert consumer.positions[SECOND] < 3000


@pytest.mark.slow
@pytest.mark.parametrize("most", [13, 9], ids=["with ids", "without"])
@pytest.mark.parametrize("partitions", [1, 150])
def test_a_topic_that_is_deleted_keeps_no_other_from_being_read(
    filled, group, consumer_of, caplog, partitions, most
):
    filled.versions["Metadata"] = (0, most)
    bills = FakeTopic(topic_id_of("bills"), [1] * partitions, [0] * partitions)
    filled.topics["bills"] = bills
    filled.logs |= {("bills", number): FakeLog() for number in range(partitions)}
    consumer = consumer_of(("orders", "bills"))
    poll_rows(consumer, 40)
    del filled.topics["bills"]
    for offset in (20, 21, 22):
        filled.logs["orders", 0].append(b"later")
        assert poll_rows(consumer, 1) == [(0, offset)]

    def said():
        return [text for text in caplog.messages if "'bills': UNKNOWN_TOPIC_OR_PARTITION" in text]

    poll_until(consumer, said, "a word about it")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 23)]
    assert len(said()) == 1
    filled.topics["bills"] = bills
    filled.logs["bills", 0].append(b"once more")
    assert poll_rows(consumer, 1) == [(0, 0)]


@pytest.mark.slow
def test_a_broker_that_says_nothing_holds_no_poll_up(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    asked = len(filled.asked("Fetch"))
    filled.on("Fetch", STALL)
    began = time.monotonic()
    for _ in range(25):
        assert consumer.poll(0.01) is None
    assert time.monotonic() - began < PATIENCE_S
    assert len(filled.asked("Fetch")) <= asked + 2, "the same one is waited for"
    filled.on("Fetch", DEFAULT)
    filled.hang_up()
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]


@pytest.mark.slow
def test_a_broker_that_never_answers_is_an_error_in_time(filled, group, consumer_of):
    consumer = consumer_of(request_timeout_ms=200, default_api_timeout_ms=600)
    poll_rows(consumer, 40)
    filled.on("Fetch", STALL)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"receive: not done within 0\.22 s"):
        poll_until(consumer, lambda: False, "the error")
    assert time.monotonic() - began < PATIENCE_S / 2
    filled.on("Fetch", DEFAULT)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]


@pytest.mark.slow
def test_an_answer_that_is_held_is_not_late(filled, group, consumer_of):
    """A leader may hold it for fetch.max.wait.ms, whatever request.timeout.ms is."""
    group.committed |= {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    filled.on("Fetch", STALL)
    consumer = consumer_of(
        fetch_max_wait_ms=60_000, request_timeout_ms=100, default_api_timeout_ms=300
    )
    assert consumer.poll(0.6) is None
    assert len(filled.asked("Fetch")) == 1


def test_a_leader_is_told_how_much_is_worth_an_answer_and_how_long_to_hold_it(
    filled, group, consumer_of
):
    poll_rows(consumer_of(fetch_min_bytes=7, fetch_max_wait_ms=30), 1)
    asked = filled.asked("Fetch")[0]
    assert (asked.min_bytes, asked.max_wait_ms) == (7, 30)


@pytest.mark.slow
@pytest.mark.parametrize("poll_s", first(1, [0.01, 0.5]))
def test_a_leader_that_cannot_be_reached_keeps_no_other_from_being_read(
    filled, group, consumer_of, poll_s
):
    """It is an error in time all the same, and the others go on after that."""
    filled.topics["orders"].move(0, 2)
    consumer = consumer_of(default_api_timeout_ms=500)
    poll_rows(consumer, 40)
    filled.stop(2)
    errors = []
    deadline = Deadline.after(PATIENCE_S)
    for offset in range(20, 23):
        filled.logs["orders", 1].append(b"later")
        rows = []
        while not rows or len(errors) < offset - 20:
            deadline.check("waiting for rows and errors")
            try:
                rows += rows_of(consumer.poll(poll_s))
            except ConnectionFailed as error:
                errors.append(error)
        assert rows == [(1, offset)]


@pytest.mark.slow
def test_leaders_are_asked_at_once_and_whoever_answers_is_read(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", STALL, node=1)
    consumer = consumer_of(fetch_max_wait_ms=20_000)
    began = time.monotonic()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    for offset in range(20, 25):
        filled.logs["orders", 1].append(b"later")
        assert poll_rows(consumer, 1) == [(1, offset)]
    assert time.monotonic() - began < PATIENCE_S / 2
    assert len(filled.asked("Fetch", node=1)) == 1, "it has not answered yet"


def half(answer):
    """The first bytes of an answer, and nothing more on a connection that stays open."""
    return Fault(answer, lambda frame: frame[: len(frame) // 2])


@pytest.mark.slow
def test_half_an_answer_holds_no_other_leader_up(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", lambda call: half(fetch(filled, call)), DEFAULT, node=1)
    consumer = consumer_of(request_timeout_ms=1000, fetch_max_wait_ms=10)
    began = time.monotonic()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    assert consumer.poll(0.1) is None
    assert time.monotonic() - began < 0.9
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)], "asked for again"


@pytest.mark.slow
def test_nobody_is_to_blame_for_half_an_answer_while_the_member_was_away(
    filled, group, consumer_of
):
    rest = threading.Event()
    filled.on("Fetch", lambda call: Fault(fetch(filled, call), rest_after=rest), DEFAULT)
    consumer = consumer_of(
        request_timeout_ms=200, fetch_max_wait_ms=10, default_api_timeout_ms=1000
    )
    assert consumer.poll(0.1) is None
    rest.set()
    time.sleep(0.5)  # away for longer than request.timeout.ms
    assert len(poll_rows(consumer, 40)) == 40
    asked_on = {call.connection for call in filled.calls if call.api == "Fetch"}
    assert len(asked_on) == 1, "it was not asked again elsewhere"


@pytest.mark.slow
def test_logins_that_fail_to_be_renewed_lose_and_double_no_row(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    want_login(filled)
    # Every other login fails, of two threads: in a row often enough that many tries are wanted.
    waits = {"retry_backoff_max_ms": 20, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20}
    tries = {"max_partition_fetch_bytes": 200, **waits}
    consumer = consumer_of(**tries, **AS_KEYWORDS)
    login_again(filled, consumer._router.connections)
    found = poll_rows(consumer, 40)
    assert sorted(found) == [(number, offset) for number in (0, 1) for offset in range(20)]
    assert len(filled.asked("SaslAuthenticate")) > 4


def throttled(brokers, throttle_time_ms):
    """What there is, with the wish for silence."""

    def answer(call):
        parts = fetch(brokers, call).responses
        return FetchResponse(throttle_time_ms=throttle_time_ms, responses=parts)

    return answer


@pytest.mark.slow
def test_a_broker_that_wants_silence_from_the_start_holds_no_other_up(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)

    def listed(call):
        parts = list_offsets(filled, call).topics
        return ListOffsetsResponse(throttle_time_ms=1000, topics=parts)

    filled.on("ListOffsets", listed, node=1)
    began = time.monotonic()
    consumer = consumer_of()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    assert time.monotonic() - began < 0.9
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.fixture
def silenced(filled, group, consumer_of):
    """Its first leader has row 21 and wants silence for 300 ms, its second one says nothing."""
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.on("Fetch", STALL, node=2)
    filled.on("Fetch", throttled(filled, 300), DEFAULT, node=1)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    filled.logs["orders", 0].append(b"later still")
    return consumer


@pytest.mark.slow
def test_a_broker_is_asked_when_it_wants_no_more_silence(silenced):
    began = time.monotonic()
    assert rows_of(silenced.poll(PATIENCE_S)) == [(0, 21)]
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.slow
def test_a_rest_that_ends_before_the_wait_begins_ends_that(silenced, monkeypatch):
    ask = Tail._ask

    def ask_slowly(tail, only=None):
        ask(tail, only)
        time.sleep(0.02)  # longer than retry.backoff.ms

    monkeypatch.setattr(Tail, "_ask", ask_slowly)
    assert rows_of(silenced.poll(PATIENCE_S / 2)) == [(0, 21)]


@pytest.mark.slow
def test_a_poll_does_not_wait_for_the_end_of_a_silence(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.on("Fetch", throttled(filled, 1000), DEFAULT)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    filled.logs["orders", 0].append(b"later still")
    began, asked = time.monotonic(), len(filled.asked("Fetch"))
    assert consumer.poll(0.1) is None
    assert time.monotonic() - began < 0.9
    assert len(filled.asked("Fetch")) == asked
    assert poll_rows(consumer, 1) == [(0, 21)]


@pytest.mark.slow
def test_a_partition_that_fails_for_too_long_is_an_error_beside_one_that_is_read(
    filled, group, consumer_of
):
    def without_the_first(call):
        log = filled.logs["orders", 1]
        (topic,) = call.request.topics
        parts = (
            Answered(partition_index=0, error_code=KAFKA_STORAGE_ERROR)
            if item.partition == 0
            else log.fetch(1, item.fetch_offset, item.partition_max_bytes, is_first=True)
            for item in topic.partitions
        )
        return answered(*parts)(call)

    filled.on("Fetch", without_the_first)
    consumer = consumer_of(default_api_timeout_ms=300)
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    for offset in (20, 21):
        filled.logs["orders", 1].append(b"later")
        assert poll_rows(consumer, 1) == [(1, offset)]
        with pytest.raises(BrokerError, match=r"orders-0 .*KAFKA_STORAGE_ERROR"):
            poll_until(consumer, lambda: False, "the error")
    filled.on("Fetch", DEFAULT)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.fixture
def second_alone(filled, group):
    """Only the second partition has a leader, node 2; it is read to its end."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    filled.topics["orders"].move(1, 2)
    filled.topics["orders"].leaders[0] = NOBODY
    return filled


@pytest.mark.slow
def test_a_partition_without_a_leader_makes_no_other_rest(second_alone, consumer_of):
    consumer = consumer_of(retry_backoff_ms=700, fetch_max_wait_ms=0)
    poll_until(consumer, lambda: second_alone.asked("Fetch", node=2), "a fetch")
    time.sleep(0.8)  # its leader is to be looked up again
    began = time.monotonic()
    for offset in range(20, 24):
        second_alone.logs["orders", 1].append(b"later")
        assert poll_rows(consumer, 1) == [(1, offset)]
    assert time.monotonic() - began < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("retry_backoff_ms", [5, 0])
def test_a_leader_that_comes_is_asked_while_another_has_nothing(
    second_alone, consumer_of, retry_backoff_ms
):
    """However short the rest is: it may be over before anybody waits for its end."""

    def elected_meanwhile(call):
        second_alone.topics["orders"].leaders[0] = 1
        return STALL

    second_alone.on("Fetch", elected_meanwhile, node=2)
    began = time.monotonic()
    batch = consumer_of(retry_backoff_ms=retry_backoff_ms).poll(PATIENCE_S)
    assert rows_of(batch) == [(0, offset) for offset in range(15, 20)]
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.slow
def test_a_leader_that_says_nothing_is_noticed_beside_one_without_end(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", STALL, DEFAULT, node=1)
    filled.logs["orders", 1].fill(200)
    consumer = consumer_of(request_timeout_ms=200, max_partition_fetch_bytes=1)
    rows = []
    while not rows or rows[-1][0] == 1:
        time.sleep(0.02)  # by now the second one has answered again
        rows += rows_of(consumer.poll(1))
    assert consumer.positions[SECOND] < 1000


def refused(call):
    """A Fetch answer by who leads none of the partitions any more."""
    (topic,) = call.request.topics
    errors = (
        Answered(partition_index=item.partition, error_code=NOT_LEADER) for item in topic.partitions
    )
    return answered(*errors)(call)


def refusing_once(offset):
    """A Fetch answer: a refusal of the first one that asks for `offset`, else what there is."""
    refusals = [refused]

    def answer(call):
        asked = {item.fetch_offset for topic in call.request.topics for item in topic.partitions}
        return refusals.pop()(call) if offset in asked and refusals else DEFAULT

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_what_a_leader_says_while_nobody_polls_is_no_older_than_the_next_poll(
    filled, group, consumer_of, beside
):
    if beside:
        filled.topics["orders"].move(0, 2)
        filled.on("Fetch", STALL, node=2)
        group.committed["orders", 0] = (20, "")
    consumer = consumer_of(default_api_timeout_ms=5_000 if beside else 500)
    poll_rows(consumer, 20 if beside else 40)
    filled.on("Fetch", refusing_once(21), node=1)
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 20)]
    filled.logs["orders", 1].append(b"later still")
    time.sleep(0.7)
    began = time.monotonic()
    assert poll_rows(consumer, 1) == [(1, 21)]
    assert time.monotonic() - began < 0.5


@pytest.fixture
def each_asked_once(monkeypatch):
    """Fails a poll that asks for a partition that a Fetch under way asks for."""
    send_to = Tail._send_to

    def checked(tail, place, chosen, deadline):
        assert not tail._under_way.partitions & {item for item, _ in chosen}
        return send_to(tail, place, chosen, deadline)

    monkeypatch.setattr(Tail, "_send_to", checked)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(8)))
@pytest.mark.usefixtures("each_asked_once")
def test_each_row_comes_once_and_in_order_whatever_happens_to_its_leader(
    filled, group, consumer_of, seed
):
    chance = random.Random(seed)
    consumer = consumer_of(max_partition_fetch_bytes=200, request_timeout_ms=200)
    rows, ends = [], [20, 20]
    for _ in range(60):
        partition = chance.randrange(2)
        bad = ["move", "fail", "hang up", "stall", "forget", "full"]
        happens = chance.choice([*bad, "write", "write", "write"])
        if happens == "move":
            filled.topics["orders"].move(partition, chance.choice([1, 2]))
        elif happens == "fail":
            filled.on("Fetch", refused, DEFAULT)
        elif happens == "hang up":
            filled.hang_up(chance.choice([1, 2]))
        elif happens == "stall":
            filled.on("Fetch", STALL, DEFAULT, node=chance.choice([1, 2]))
        elif happens == "forget":
            with filled.at_once():
                filled.sessions.forget()
        elif happens == "full":
            filled.sessions.most = chance.choice([0, 1, 2])
        else:
            filled.logs["orders", partition].append(b"more", b"and more")
            ends[partition] += 2
        rows += rows_of(consumer.poll(0.01))
    rows += poll_rows(consumer, sum(ends) - len(rows))
    for partition, end in enumerate(ends):
        assert [offset for number, offset in rows if number == partition] == list(range(end))


@pytest.mark.slow
def test_a_large_batch_is_read_beside_a_busy_partition_that_is_always_answered_first(
    filled, group, consumer_of
):
    """As brokers before Fetch 3 do, which answer in an order of their own, and cut any batch."""
    filled.versions["Fetch"] = (0, 2)
    for number in range(2):
        filled.logs["orders", number].cuts_first = True
    filled.logs["orders", 1].append(bytes(5_000))

    def busy(call):
        filled.logs["orders", 0].append(b"more")
        return by_number(fetch(filled, call))

    filled.on("Fetch", busy)
    consumer = consumer_of(max_partition_fetch_bytes=300)
    rows, deadline = [], Deadline.after(5)
    while (1, 20) not in rows:
        deadline.check("the large one")
        rows += rows_of(consumer.poll(0.01))


def by_number(answer):
    (topic,) = answer.responses
    partitions = tuple(sorted(topic.partitions, key=lambda item: item.partition_index))
    return with_values(answer, responses=(with_values(topic, partitions=partitions),))


@pytest.mark.slow
def test_a_partition_that_moves_is_read_beside_one_without_end(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of(max_partition_fetch_bytes=1)
    poll_rows(consumer, 40)
    filled.logs["orders", 0].fill(500)
    filled.logs["orders", 1].append(b"later")
    filled.topics["orders"].move(1, 1)
    assert (1, 20) in poll_until(consumer, lambda: consumer.positions[SECOND] > 20, "its row")
    assert consumer.positions[FIRST] < 5000


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_brokers_that_hold_no_empty_answer_are_not_asked_all_the_time(
    filled, group, consumer_of, beside
):
    if beside:
        filled.topics["orders"].move(1, 2)
        filled.on("Fetch", STALL, node=2)
    consumer = consumer_of(fetch_max_wait_ms=60_000, retry_backoff_ms=50)
    poll_rows(consumer, 20 if beside else 40)
    asked = len(filled.asked("Fetch", node=1))
    assert consumer.poll(0.2) is None
    assert 1 <= len(filled.asked("Fetch", node=1)) - asked <= 6


@pytest.mark.slow
@pytest.mark.parametrize("poll_s", first(1, [0.05, 0, 0.5]))
def test_short_polls_try_again_no_more_often_than_long_ones(filled, group, consumer_of, poll_s):
    consumer = consumer_of(retry_backoff_ms=100)
    poll_rows(consumer, 40)
    filled.on("Fetch", refused)
    asked, deadline = len(filled.asked("Fetch")), Deadline.after(0.6)
    while not deadline.has_passed:
        assert consumer.poll(poll_s) is None
    assert 2 <= len(filled.asked("Fetch")) - asked <= 9


@pytest.mark.slow
def test_a_leader_that_fails_for_long_is_said_once(filled, group, consumer_of, caplog, monkeypatch):
    monkeypatch.setattr(failing, "_WORTH_A_WORD_S", 0.1)
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.stop(2)

    def said():
        return [
            text for text in caplog.messages if text.startswith("nothing fetched from orders-1")
        ]

    poll_until(consumer, said, "a word about it")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    consumer.poll(0.1)
    assert len(said()) == 1


def began(consumer):
    """The partitions of which it has given rows."""
    return {item for item, offset in consumer.positions.items() if offset}


@pytest.mark.slow
def test_partitions_of_several_leaders_come_side_by_side(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    for partition in range(2):
        filled.logs["orders", partition].fill(98)
    consumer = consumer_of(max_partition_fetch_bytes=1)
    # Each leader answers when the system lets it: one may come twice before the other, not always.
    rows = poll_until(consumer, lambda: {FIRST, SECOND} <= began(consumer), "rows of both")
    assert len(rows) < 1000
    assert len(rows + poll_rows(consumer, 2000 - len(rows))) == 2000
    filled.topics["orders"].move(1, 1)
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 1000)]


@pytest.mark.slow
def test_a_partition_without_end_does_not_starve_the_others(filled, group, consumer_of):
    filled.logs["orders", 0].fill(50)
    consumer = consumer_of(max_partition_fetch_bytes=1, fetch_max_bytes=1)
    assert {partition for partition, _ in poll_rows(consumer, 60)} == {0, 1}


@pytest.mark.slow
def test_members_of_old_brokers_leave_by_themselves(filled, group, consumer_of):
    filled.versions |= {"LeaveGroup": (0, 2), "JoinGroup": (0, 3), "FindCoordinator": (0, 3)}
    filled.versions["OffsetFetch"] = (0, 7)
    consumer = consumer_of()
    poll_rows(consumer, 40)
    consumer.close()
    assert [item.member_id for item in filled.asked("LeaveGroup")] == ["m1"]


@pytest.mark.slow
def test_close_ends_the_thread_and_again_does_nothing(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    consumer.close()
    consumer.close()
    assert not consumer._keeper._thread.is_alive()
    assert len(filled.asked("LeaveGroup")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_close_waits_for_no_sync_of_who_has_left(filled, group, consumer_of, assignor):
    """The leader was killed before its own: a coordinator forgets that of who leaves meanwhile."""
    filled.on("SyncGroup", STALL)
    consumer = consumer_of(**{"partition.assignment.strategy": assignor})
    until(lambda: filled.asked("SyncGroup"), what="its SyncGroup")
    began = time.monotonic()
    consumer.close()
    assert time.monotonic() - began < PATIENCE_S / 4
    assert not consumer._keeper._thread.is_alive()
    assert [item.members[0].member_id for item in filled.asked("LeaveGroup")] == ["m1"]


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_a_static_member_that_closes_gives_its_joining_up(
    filled, group, consumer_of, assignor, api
):
    """It tells nobody that it goes: what it has sent is not waited for all the same."""
    filled.on(api, STALL)
    more = {"group.instance.id": "i1", "partition.assignment.strategy": assignor}
    consumer = consumer_of(**more)
    until(lambda: filled.asked(api), what=f"its {api}")
    consumer.close()
    thread = consumer._keeper._thread
    until(lambda: not thread.is_alive(), what="the end of its thread")
    assert not filled.asked("LeaveGroup")


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_who_is_named_after_close_leaves(filled, group, consumer_of, assignor):
    """A coordinator lets no generation begin until who was named has joined, or is gone."""
    is_asked, let_go = threading.Event(), threading.Event()

    def join(call):
        is_asked.set()
        let_go.wait(PATIENCE_S)
        return group.join(call)

    filled.on("JoinGroup", join)
    consumer = consumer_of(**{"partition.assignment.strategy": assignor})
    assert is_asked.wait(PATIENCE_S)
    consumer.close()
    let_go.set()
    consumer._keeper._thread.join(PATIENCE_S)
    (left,) = filled.asked("LeaveGroup")
    assert [item.member_id for item in left.members] == ["m1"]
    assert len(filled.asked("JoinGroup")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_who_has_left_waits_for_no_answer_to_its_join(filled, group, consumer_of, assignor):
    """A coordinator answers it then; one that hangs does not."""
    filled.on("JoinGroup", group.join, STALL)
    consumer = consumer_of(**{"partition.assignment.strategy": assignor})
    until(lambda: len(filled.asked("JoinGroup")) == 2, what="its JoinGroup")
    consumer.close()
    assert not consumer._keeper._thread.is_alive()
    assert [item.members[0].member_id for item in filled.asked("LeaveGroup")] == ["m1"]


@pytest.mark.parametrize("topics", ["orders", []])
def test_topics_are_a_set_of_names(topics):
    with pytest.raises(ConfigError, match="topics"):
        Consumer({"bootstrap.servers": "x:1", "group.id": "g"}, topics)
