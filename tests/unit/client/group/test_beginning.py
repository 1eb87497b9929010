"""Where a member begins: what was committed, the policy, and who does not say it."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import patience, reading
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
)
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import DEFAULT, STALL, FakeTopic, close, topic_id_of
from tests.fake_log import FakeLog, fetch, list_offsets
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
NOBODY = -1


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
    times = {"retry_backoff_ms": 1500, "retry_backoff_max_ms": 1500}
    consumer = consumer_of(default_api_timeout_ms=3000, **times)
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
