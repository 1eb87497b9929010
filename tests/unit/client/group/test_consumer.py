"""Every way through a membership, at a fake coordinator."""

from __future__ import annotations

import threading
import time
import traceback

import pytest

from pyspark_kafkaproto.client.consumer import Consumer
from pyspark_kafkaproto.client.group.classic.assignors import Subscriber
from pyspark_kafkaproto.client.group.classic.subscription import assignment_bytes
from pyspark_kafkaproto.client.group.membership import State
from pyspark_kafkaproto.client.group.reading import Reading
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.cluster.groups.members import read_assignment
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import DEFAULT, STALL, close
from tests.fake_sessions import with_values
from tests.unit.client.group.fake_group import FakeGroup, beats
from tests.unit.client.group.polling import (
    PATIENCE_S,
    poll_rows,
    poll_until,
    rows_of,
    rows_until_idle,
)
from tests.waiting import until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID = 16, 22, 25
INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID = 26, 27, 82


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
@pytest.mark.parametrize("listener", ["on_assign", "on_revoke", "on_lost", "on_commit"])
def test_iterating_ends_where_a_listener_closes_the_consumer(filled, group, consumer_of, listener):
    """It is no error of who iterates, who has nothing more to do."""
    listeners = {listener: lambda *_: consumer.close()}
    consumer = consumer_of(listeners=listeners, auto_commit_interval_ms=10)
    rows = []
    for batch in consumer:
        rows += rows_of(batch)
        if len(rows) == 40:
            beats(filled, UNKNOWN_MEMBER_ID if listener == "on_lost" else REBALANCE_IN_PROGRESS)
    assert not consumer.assignment
    assert len(rows) == (0 if listener == "on_assign" else len(set(rows)))


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
def test_an_error_that_each_poll_raises_does_not_grow(filled, group, consumer_of):
    """Raised again, the same error would have one more traceback each time, and hold its frames."""
    consumer = consumer_of(group_instance_id="till-1")
    beats(filled, FENCED_INSTANCE_ID)
    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
        poll_until(consumer, lambda: False, "the error")
    met = []
    for _ in range(3):
        with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID") as caught:
            consumer.poll(0)
        met.append([entry.name for entry in traceback.extract_tb(caught.tb)])
    assert met[0] == met[-1]
    assert "_follow" in met[0], "and whoever reads it sees where it was met"
    assert "_beat" in met[0]


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
def test_what_is_polled_as_all_is_given_up_was_read(filled, group, consumer_of, noted):
    """Each poll told it once more, and polled, until there was no stack left."""
    drained = []

    def drain(own):
        noted.append(("revoked", own))
        if len(noted) < 10:
            drained.extend(rows_until_idle(consumer))

    listeners = noted.listeners() | {"on_revoke": drain}
    consumer = consumer_of(listeners=listeners, max_poll_records=5)
    rows = rows_of(consumer.poll(PATIENCE_S))
    beats(filled, REBALANCE_IN_PROGRESS)
    until(lambda: consumer._membership.state is State.REBALANCING, what="the rebalance")
    rows += poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("revoked", BOTH), ("assigned", BOTH)]
    assert drained
    committed = [at for at, _ in group.committed.values()]
    assert sum(committed) == len(rows + drained), "all that was given, and no more"
    rows += poll_until(consumer, lambda: sum(consumer.positions.values()) == 40, "the rest")
    assert sorted(rows + drained) == [(partition, n) for partition in range(2) for n in range(20)]
    assert not rows_until_idle(consumer)


@pytest.mark.slow
def test_what_a_listener_has_polled_comes_once_where_the_poll_that_told_it_fails(
    filled, group, consumer_of, monkeypatch
):
    """Only what is still on its way to who polls comes again."""
    rows = []

    def begin(own):
        rows.extend(rows_of(consumer.poll(PATIENCE_S)))
        monkeypatch.setattr(Reading, "next_batch", fail)

    def fail(*_):
        raise ZeroDivisionError

    consumer = consumer_of(listeners={"on_assign": begin}, max_poll_records=5)
    with pytest.raises(ZeroDivisionError):
        consumer.poll(PATIENCE_S)
    monkeypatch.undo()
    rows += poll_rows(consumer, 35)
    assert sorted(rows) == [(partition, n) for partition in range(2) for n in range(20)]


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


@pytest.mark.slow
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
    poll_until(back, lambda: back.assignment >= BOTH, "what it had")
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


@pytest.mark.parametrize("name", ["sticky", None])
def test_a_group_that_shares_out_as_nobody_offered_is_left(brokers, group, consumer_of, name):
    def join(call):
        answer = group.join(call)
        if answer.error_code:
            return answer
        given = {
            field: getattr(answer, field) for field in ("generation_id", "member_id", "leader")
        }
        return JoinGroupResponse(protocol_type="consumer", protocol_name=name, **given)

    brokers.on("JoinGroup", join)
    consumer = consumer_of(partition_assignment_strategy="range")
    with pytest.raises(RemoteProtocolError, match=rf"shares out by '{name or ''}', not ours"):
        poll_until(consumer, lambda: False, "an error")
    consumer.close()
    assert "SyncGroup" not in group.said()
    assert group.said()[-1] == "LeaveGroup"
