"""auto.offset.reset=none, in each protocol: where nothing is committed somebody has to say."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import reading
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests.fake_log import FakeLog
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of
from tests.unit.cluster.committing import FakeCoordinator, fetch_refused, unstable

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
GROUP_AUTHORIZATION_FAILED = 30
NOTHING = r"partition orders-0: .*committed nothing.*is none"


def poll_around_errors(consumer, count):
    """(partition, offset) of `count` rows at least, and how many errors came beside them."""
    rows, errors = [], 0
    deadline = Deadline.after(PATIENCE_S)
    while len(rows) < count:
        deadline.check(f"waiting for {count} rows; there are {len(rows)}")
        try:
            rows += rows_of(consumer.poll(0.05))
        except BrokerError:
            errors += 1
    return rows, errors


def poll_past(consumer, text):
    """Poll until there is another error than those with `text`, for some time."""
    deadline = Deadline.after(PATIENCE_S)
    while not deadline.has_passed:
        try:
            consumer.poll(0.01)
        except BrokerError as error:
            if not re.search(text, str(error)):
                raise


@pytest.mark.slow
def test_a_partition_with_nothing_committed_keeps_no_other_from_being_read(
    filled, coordinator, member_of, noted
):
    coordinator.committed["orders", 1] = (0, "")
    consumer = member_of(noted.listeners(), auto_offset_reset="none")
    rows, errors = poll_around_errors(consumer, 20)
    assert rows == [(1, offset) for offset in range(20)]
    assert errors
    assert noted == [("assigned", BOTH)]
    for _ in range(2):
        with pytest.raises(BrokerError, match=NOTHING):
            poll_until(consumer, lambda: False, "the error again")
    assert consumer.positions == {SECOND: 20}
    consumer.close()
    assert coordinator.committed == {("orders", 1): (20, "")}


@pytest.mark.slow
def test_it_is_an_error_at_every_poll_where_there_is_no_other(coordinator, member_of):
    consumer = member_of(auto_offset_reset="none")
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"orders-0, orders-1: .*committed nothing.*is none"):
            consumer.poll(PATIENCE_S)
    assert consumer.assignment == BOTH


def test_a_right_that_was_taken_away_is_no_wait_for_a_commit(filled, coordinator, member_of):
    coordinator.committed["orders", 1] = (0, "")
    consumer = member_of(auto_offset_reset="none")
    poll_around_errors(consumer, 20)
    filled.on("OffsetFetch", fetch_refused(GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
        poll_past(consumer, NOTHING)


@pytest.mark.slow
def test_what_is_committed_later_is_read(coordinator, member_of):
    consumer = member_of(auto_offset_reset="none")
    with pytest.raises(BrokerError, match="is none"):
        consumer.poll(PATIENCE_S)
    coordinator.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    assert poll_rows(consumer, 5) == [(0, offset) for offset in range(15, 20)]


@pytest.mark.slow
def test_whoever_seeks_is_met_by_no_error(coordinator, member_of):
    """As they come, where offsets are kept elsewhere, or after the error."""
    consumer = member_of(
        {"on_assign": lambda own: consumer.seek(FIRST, 5)}, auto_offset_reset="none"
    )
    rows, _ = poll_around_errors(consumer, 15)
    assert rows == [(0, offset) for offset in range(5, 20)]
    with pytest.raises(BrokerError, match=r"partition orders-1: .*committed nothing"):
        poll_until(consumer, lambda: False, "the error")
    consumer.seek(SECOND, 18)
    assert poll_rows(consumer, 2) == [(1, 18), (1, 19)]
    assert consumer.poll(0.1) is None
    assert consumer.poll(0.1) is None
    consumer.close()
    assert coordinator.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}


@pytest.mark.slow
def test_what_is_paused_is_no_error(coordinator, member_of):
    consumer = member_of(
        {"on_assign": lambda own: consumer.pause({FIRST})}, auto_offset_reset="none"
    )
    with pytest.raises(BrokerError, match="partition orders-1: "):
        consumer.poll(PATIENCE_S)
    coordinator.committed["orders", 1] = (20, "")
    for _ in range(3):
        assert consumer.poll(0.05) is None
    consumer.resume({FIRST})
    with pytest.raises(BrokerError, match=NOTHING):
        poll_until(consumer, lambda: False, "the error")


@pytest.mark.slow
def test_an_error_is_told_again_where_all_others_are_paused(coordinator, member_of):
    coordinator.committed["orders", 0] = (0, "")
    consumer = member_of(auto_offset_reset="none")
    rows, _ = poll_around_errors(consumer, 20)
    assert {partition for partition, _ in rows} == {0}
    with pytest.raises(BrokerError, match="partition orders-1: "):
        poll_until(consumer, lambda: False, "the error")
    assert consumer.poll(0) is None, "it is asked for what is read, before that is paused"
    consumer.pause({FIRST})
    with pytest.raises(BrokerError, match="partition orders-1: "):
        consumer.poll(PATIENCE_S)


@pytest.mark.slow
def test_a_partition_that_comes_while_others_are_read_is_told_beside_them(
    filled, heartbeats, incremental_of
):
    heartbeats.committed |= {("orders", 0): (0, ""), ("orders", 1): (0, "")}
    consumer = incremental_of(auto_offset_reset="none")
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.topics["orders"].leaders.append(1)
        filled.topics["orders"].epochs.append(0)
        filled.logs["orders", 2] = FakeLog()
        heartbeats.share_out()
    with pytest.raises(BrokerError, match=r"partition orders-2: .*committed nothing.*is none"):
        poll_until(consumer, lambda: False, "the error")
    filled.logs["orders", 0].append(b"later")
    rows, _ = poll_around_errors(consumer, 1)
    assert rows == [(0, 20)]
    heartbeats.committed["orders", 2] = (0, "")
    filled.logs["orders", 2].append(b"new")
    rows, _ = poll_around_errors(consumer, 1)
    assert rows == [(2, 0)]


@pytest.mark.slow
def test_offsets_that_a_transaction_holds_later_are_waited_for(
    filled, coordinator, member_of, monkeypatch
):
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.1)
    consumer = member_of(auto_offset_reset="none")
    with pytest.raises(BrokerError, match="is none"):
        consumer.poll(PATIENCE_S)
    filled.on("OffsetFetch", unstable)
    with suppress(BrokerError):
        consumer.poll(0.05)
    assert consumer.poll(0.05) is None
    committed = {("orders", 0): (19, ""), ("orders", 1): (20, "")}
    FakeCoordinator(filled, g=committed)
    assert poll_rows(consumer, 1) == [(0, 19)]
