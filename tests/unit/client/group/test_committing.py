"""Commits of a member, at a fake coordinator: their order, their errors, what is tried again."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.consumer import Consumer
from pyspark_kafkaproto.client.group.membership import State
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    DeadlineExceeded,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import STALL, close
from tests.unit.client.group.fake_group import beats
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until
from tests.unit.cluster.committing import (
    committing,
    committing_each,
    held_up,
)
from tests.waiting import until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
ILLEGAL_GENERATION = 22
COORDINATOR_NOT_AVAILABLE = 15
OFFSET_METADATA_TOO_LARGE = 12
REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID = 27, 82


def divide_by_zero(*_, **__):
    """What no error of ours is."""
    raise ZeroDivisionError


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


@pytest.fixture
def telling(filled, group, consumer_of):
    """A member that has read all and commits nothing by itself, and what its commits come to."""
    told = []
    consumer = consumer_of(
        listeners={"on_commit": lambda *said: told.append(said)}, enable_auto_commit="false"
    )
    poll_rows(consumer, 40)
    return consumer, told


@pytest.mark.slow
def test_a_refused_commit_takes_none_with_it_that_waited_beside_it(filled, group, telling):
    consumer, told = telling
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
def test_the_error_of_a_commit_that_goes_apart_has_what_was_committed(filled, group, telling):
    consumer, told = telling
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
def test_a_commit_that_goes_apart_is_tried_again_before_those_behind_it(filled, group, telling):
    consumer, told = telling
    short = committing_short_texts(group)
    let_go = held_up(filled, short, committing(COORDINATOR_NOT_AVAILABLE), short)
    consumer.commit({SECOND: 5}, wait=False)
    consumer.commit({SECOND: CommittedOffset(6, "x" * 11)}, wait=False)
    let_go.set()
    consumer.commit({FIRST: 4})
    assert [error is None for _, error in told] == [True, False]
    assert group.committed == {("orders", 0): (4, ""), ("orders", 1): (5, "")}


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
    timeout_s = 4.0
    times = {"default_api_timeout_ms": 4000, "request_timeout_ms": 4000}
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


@pytest.mark.slow
@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("closes", [False, True])
def test_a_listener_that_fails_keeps_the_last_commit_from_nothing(
    filled, group, consumer_of, closes, is_refused
):
    """The rows since the commit that it was told of were read again, by whoever had them then."""
    told = []

    def give_up(_):
        if is_refused:
            filled.on("OffsetCommit", committing(OFFSET_METADATA_TOO_LARGE), group.commit)
        consumer.commit({FIRST: 7}, wait=False)
        until(lambda: consumer._commits._unwaited[-1].is_done, what="the answer")

    def tell(offsets, error):
        told.append(offsets)
        raise error or ZeroDivisionError

    consumer = consumer_of(listeners={"on_revoke": give_up, "on_commit": tell})
    poll_rows(consumer, 40)
    if not closes:
        beats(filled, REBALANCE_IN_PROGRESS)
        until(lambda: consumer._membership.state is State.REBALANCING, what="the rebalance")
    with pytest.raises(BrokerError if is_refused else ZeroDivisionError):
        (consumer.close if closes else consumer.poll)()
    assert told == [{FIRST: 7}]
    assert group.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
