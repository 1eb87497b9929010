"""Members of a share group, at fake brokers with Kafka's rules."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from contextlib import suppress
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto import Acknowledge, SubscriptionPattern, TopicPartition
from pyspark_kafkaproto.client.group import failing, keeper, membership
from pyspark_kafkaproto.client.share import coming, exchange, session
from pyspark_kafkaproto.client.share import consumer as consumer_module
from pyspark_kafkaproto.client.share import rows as rows_module
from pyspark_kafkaproto.client.share.consumer import ShareConsumer
from pyspark_kafkaproto.cluster import topology
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    LocalProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.share_acknowledge import ShareAcknowledgeResponse
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from pyspark_kafkaproto.net import Deadline, connection
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import CONTROL
from tests.examples import first
from tests.fake_broker import STALL, close
from tests.fake_log import Batch
from tests.fake_sessions import with_values
from tests.interrupted import Interrupted
from tests.unit.client.share.fake_shares import (
    GAP,
    INVALID_EPOCH,
    NOT_FOUND,
    REJECT,
    RELEASE,
    RENEW,
    beat_refused,
)
from tests.unit.client.share.polling import PATIENCE_S, next_batch, poll_rows, rows_of
from tests.unit.client.turns import polls_per_turn
from tests.waiting import until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
EVERY = {("orders", partition, offset) for partition in range(2) for offset in range(20)}
ROWS = [(partition, offset, 1) for partition in range(2) for offset in range(20)]
GROUP_MAX_SIZE_REACHED, UNSUPPORTED_VERSION, GROUP_ID_NOT_FOUND = 81, 35, 69
TOPIC_AUTHORIZATION_FAILED, SESSION_LIMIT_REACHED = 29, 133


def poll_until(consumer, is_there, what):
    rows, deadline = [], Deadline.after(PATIENCE_S)
    while not is_there():
        deadline.check(f"waiting for {what}")
        if (batch := consumer.poll(0.02)) is not None:
            rows += rows_of(batch)
    return rows


# Membership


def test_a_member_joins_reads_accepts_and_leaves(filled, shares, member_of):
    consumer = member_of(client_rack="r1")
    assert sorted(poll_rows(consumer, 40)) == ROWS
    assert consumer.assignment == {FIRST, SECOND}
    assert consumer.lock_s == 30
    assert consumer.close(accept=True) == {FIRST: None, SECOND: None}
    assert shares.done() == EVERY
    assert not shares.members
    assert not shares.sessions
    known = consumer.member_id
    assert shares.heard[0] == (known, 0, ("orders",), "r1")
    assert {topics for _, _, topics, _ in shares.heard[1:]} == {None}
    assert shares.heard[-1] == (known, -1, None, None)


def test_who_is_fenced_or_forgotten_comes_back_under_its_id(filled, shares, member_of):
    consumer = member_of()
    poll_rows(consumer, 40)

    def fence():
        shares.members[consumer.member_id] += 99

    for befall in (shares.members.clear, fence):
        joined = len([1 for _, epoch, _, _ in shares.heard if epoch == 0])
        with filled.at_once():
            befall()
        poll_until(
            consumer,
            lambda n=joined: len([1 for _, epoch, _, _ in shares.heard if epoch == 0]) > n,
            "its coming back",
        )
    assert {member_id for member_id, *_ in shares.heard} == {consumer.member_id}
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20, 1)], "its sessions have lived on"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (GROUP_MAX_SIZE_REACHED, r"group\.share\.max\.size"),
        (GROUP_ID_NOT_FOUND, "group of another type"),
        (UNSUPPORTED_VERSION, r"Kafka 4\.2.*share\.version"),
    ],
)
def test_a_group_that_does_not_take_us_says_what_to_do(brokers, member_of, code, why):
    brokers.on("ShareGroupHeartbeat", beat_refused(code))
    with pytest.raises(BrokerError, match=why):
        member_of().poll(PATIENCE_S)


def test_who_polls_on_reads_once_share_groups_are_switched_on(filled, shares, member_of):
    """So the error has told to do: it stood for good, and was not so any more."""
    filled.on("ShareGroupHeartbeat", beat_refused(UNSUPPORTED_VERSION))
    consumer = member_of()
    with pytest.raises(BrokerError, match=r"features upgrade share\.version"):
        consumer.poll(PATIENCE_S)
    filled.on("ShareGroupHeartbeat", shares.beat)
    with suppress(BrokerError):  # of a try between the two
        consumer.poll(0)
    assert poll_rows(consumer, 40)


def test_brokers_without_share_groups_are_named(brokers, member_of):
    del brokers.versions["ShareGroupHeartbeat"]
    with pytest.raises(UnsupportedVersion, match=r"Kafka 4\.2.*share\.version"):
        member_of().poll(PATIENCE_S)


# Sessions


def test_a_session_names_what_is_new_and_says_what_was_read(filled, shares, member_of):
    consumer = member_of(max_poll_records=20)
    poll_rows(consumer, 40)
    consumer.poll(0.05)
    fetches = filled.asked("ShareFetch")
    assert [item.share_session_epoch for item in fetches] == list(range(len(fetches)))
    assert not any(
        part.acknowledgement_batches for topic in fetches[0].topics for part in topic.partitions
    )
    assert {item.max_records for item in fetches} == {item.batch_size for item in fetches} == {20}
    said = [
        (part.partition_index, batch.first_offset, batch.last_offset, batch.acknowledge_types)
        for item in fetches[1:]
        for topic in item.topics
        for part in topic.partitions
        for batch in part.acknowledgement_batches
    ]
    assert sorted(said) == [(n, 0, 19, (1,)) for n in range(2)]
    assert not filled.asked("ShareAcknowledge"), "fetches took it along"


@pytest.mark.parametrize("code", [NOT_FOUND, INVALID_EPOCH])
def test_a_lost_session_is_begun_anew_and_told(filled, shares, explicit_of, code, caplog):
    consumer = explicit_of()
    assert rows_of(next_batch(consumer)) == [(0, n, 1) for n in range(20)]
    with filled.at_once():
        if code == NOT_FOUND:
            shares.end_sessions()
        else:
            for session in shares.sessions.values():
                session.epoch += 1
    consumer.acknowledge()
    (result,) = consumer.commit().values()
    assert result.code == code
    assert "comes again" in str(result)
    assert "acknowledgements were not taken" in caplog.text
    rows = poll_rows(consumer, 40, consumer.acknowledge)
    assert sorted(rows) == [(n, at, 2) for n in range(2) for at in range(20)], "what was held, too"
    assert set(consumer.commit().values()) == {None}
    assert shares.done() == EVERY


def test_a_session_that_is_refused_before_the_end_ends_with_its_connection(
    filled, shares, explicit_of
):
    consumer = explicit_of()
    next_batch(consumer)
    with filled.at_once():
        for session in shares.sessions.values():
            session.epoch += 1
    consumer.acknowledge()
    (result,) = consumer.commit().values()
    assert result.code == INVALID_EPOCH
    consumer.close()
    filled.wait_until_left()
    assert not shares.sessions


def test_what_is_left_of_a_session_that_is_lost_is_named_once(filled, shares, explicit_of):
    consumer = explicit_of()
    next_batch(consumer)
    with filled.at_once():
        shares.end_sessions()
    consumer.acknowledge(Acknowledge.ACCEPT, FIRST, 0, 9)
    (result,) = consumer.commit().values()
    assert result.code == NOT_FOUND
    assert consumer.acquired == [(FIRST, 10, 19, 1)]


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_a_lost_connection_is_told_to_who_acknowledges(filled, shares, explicit_of, api):
    consumer = explicit_of()
    poll_rows(consumer, 40, consumer.acknowledge)
    answer = shares.fetch if api == "ShareFetch" else shares.acknowledge

    def unheard(call):
        shares.end_session(call.node_id, call.request.member_id)
        return close()

    filled.on(api, unheard, answer)
    if api == "ShareFetch":
        assert consumer.poll(0.1) is None or consumer.acknowledge() is None
    results = consumer.commit()
    assert {type(item) for item in results.values()} == {ConnectionFailed}
    rows = poll_until(consumer_that_accepts(consumer), lambda: shares.done() == EVERY, "all of it")
    assert {count for *_, count in rows} <= {2}


def test_what_is_told_of_a_lost_connection_keeps_nothing_of_who_polled(
    filled, shares, member_of, caplog
):
    """Who acknowledges implicitly may never ask: a traceback would hold the frames for ever."""
    consumer = member_of()
    next_batch(consumer)

    class Large:
        pass

    def poll_and_be_cut_off():
        held = Large()
        large.append(weakref.ref(held))
        filled.on("ShareFetch", close())
        while not consumer._exchange.results:
            consumer.poll(0.05)
            consumer._exchange.accept_given()

    large = []
    poll_and_be_cut_off()
    filled.on("ShareFetch", shares.fetch)
    caplog.clear()  # which keeps the error
    gc.collect()
    assert large[0]() is None
    assert {type(item) for item in consumer.commit().values()} == {ConnectionFailed}


class consumer_that_accepts:  # noqa: N801 - reads as what it is
    def __init__(self, consumer):
        self._consumer = consumer

    def poll(self, timeout_s):
        batch = self._consumer.poll(timeout_s)
        if batch is not None:
            self._consumer.acknowledge()
        else:
            self._consumer.commit()
        return batch


@pytest.mark.parametrize("tells", [True, False])
def test_a_leader_that_moves_is_followed(filled, shares, explicit_of, tells):
    shares.tells = tells
    consumer = explicit_of()
    poll_rows(consumer, 40, consumer.acknowledge)
    assert set(consumer.commit().values()) == {None}
    filled.logs["orders", 1].append(b"held")
    assert rows_of(next_batch(consumer)) == [(1, 20, 1)]
    asked = len(filled.asked("Metadata"))
    with filled.at_once():
        shares.move("orders", 1, 2)
    consumer.acknowledge()
    (result,) = consumer.commit().values()
    assert "NOT_LEADER_OR_FOLLOWER" in str(result)
    assert "comes again" in str(result)
    assert poll_rows(consumer, 1) == [(1, 20, 2)]
    consumer.acknowledge()
    assert consumer.commit() == {SECOND: None}
    assert filled.asked("ShareFetch", 2)
    if tells:
        assert len(filled.asked("Metadata")) <= asked + 1


def test_a_topic_that_is_made_anew_is_read_and_so_are_others(filled, shares, member_of):
    """All of a request that names the id of one that is gone is answered with one error."""
    filled.add_topic("others")
    consumer = member_of(["orders", "others"])
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.make_again("orders", 2)
        shares.offsets.clear()
        for topic in ("orders", "others"):
            filled.logs[topic, 0].append(b"new")
    assert poll_rows(consumer, 2) == [(0, 0, 1), (0, 0, 1)]


def test_a_topic_that_is_gone_is_no_error_until_a_heartbeat_says_so(
    filled, shares, member_of, monkeypatch
):
    monkeypatch.setattr(topology, "_NEWS_TRAVELS_S", 0.0)
    filled.add_topic("others")
    consumer = member_of(["orders", "others"])
    poll_rows(consumer, 40)
    with filled.at_once():
        del filled.topics["orders"]
        shares.offsets.clear()
    for _ in range(2):
        looked = len(filled.asked("Metadata"))
        poll_until(consumer, lambda n=looked: len(filled.asked("Metadata")) > n, "a look at topics")
    filled.logs["others", 0].append(b"new")
    assert poll_rows(consumer, 1) == [(0, 0, 1)]


def test_a_failure_does_not_last_while_others_have_the_partition(
    filled, shares, member_of, monkeypatch
):
    passed_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed_s, sleep=time.sleep)
    for module in (exchange, failing, session):
        monkeypatch.setattr(module, "time", clock)
    filled.on("ShareFetch", ShareFetchResponse(error_code=SESSION_LIMIT_REACHED))
    ours = member_of()._exchange
    for assigned in ({FIRST}, {SECOND}, {FIRST}):
        asked = len(filled.asked("ShareFetch"))
        while len(filled.asked("ShareFetch")) == asked:
            ours.turn(assigned, Deadline.after(PATIENCE_S))
        assert ours.next_part() is None
        passed_s += 4.0  # each time less than default.api.timeout.ms, together more


def test_a_broker_with_too_many_sessions_is_asked_again_until_it_lasts(filled, shares, member_of):
    refused = ShareFetchResponse(error_code=SESSION_LIMIT_REACHED)
    filled.on("ShareFetch", refused, refused, shares.fetch)
    assert sorted(poll_rows(member_of(), 40)) == ROWS
    filled.on("ShareFetch", refused)
    consumer = member_of(default_api_timeout_ms=100)
    with pytest.raises(BrokerError, match=r"group\.share\.max\.share\.sessions"):
        poll_until(consumer, lambda: False, "an error")


def test_a_broker_that_says_nothing_is_left(filled, shares, member_of):
    filled.on("ShareFetch", STALL, shares.fetch)
    assert sorted(poll_rows(member_of(request_timeout_ms=100), 40)) == ROWS


def test_leaders_without_share_groups_are_named(filled, shares, member_of):
    del filled.versions["ShareFetch"]
    with pytest.raises(UnsupportedVersion, match=r"ShareFetch.*Kafka 4\.2.*share\.version"):
        poll_until(member_of(), lambda: False, "an error")


def test_a_partition_that_may_not_be_read_is_an_error_and_others_are_read(
    filled, shares, member_of
):
    def refuse(call):
        answer = shares.fetch(call)
        if answer.error_code:
            return answer
        topic_id = filled.topics["orders"].topic_id
        part = ShareFetchResponse.Topic.Partition(
            partition_index=1, error_code=TOPIC_AUTHORIZATION_FAILED
        )
        others = [item for item in answer.responses if item.partitions[0].partition_index == 0]
        others.append(ShareFetchResponse.Topic(topic_id=topic_id, partitions=(part,)))
        return ShareFetchResponse(acquisition_lock_timeout_ms=30_000, responses=tuple(others))

    filled.on("ShareFetch", refuse)
    consumer = member_of()
    assert poll_rows(consumer, 20) == [(0, n, 1) for n in range(20)]
    with pytest.raises(BrokerError, match="READ on the topic"):
        consumer.poll(PATIENCE_S)


def test_a_topic_that_may_not_be_seen_is_an_error_and_others_are_read(filled, shares, member_of):
    filled.add_topic("secret", 3)
    filled.topics["secret"].error_code = TOPIC_AUTHORIZATION_FAILED
    consumer, rows, errors = member_of(["orders", "secret"]), [], []
    deadline = Deadline.after(PATIENCE_S)
    while len(rows) < 40 or not errors:
        deadline.check("all rows, and an error")
        try:
            batch = consumer.poll(0.02)
        except BrokerError as error:
            errors.append(str(error))
        else:
            rows += [] if batch is None else rows_of(batch)
    assert sorted(rows) == ROWS
    assert "topic 'secret': TOPIC_AUTHORIZATION_FAILED" in errors[0]


# Acknowledging


def test_what_is_not_acknowledged_is_named(filled, shares, explicit_of):
    consumer = explicit_of()
    batch = next_batch(consumer)
    assert consumer.acquired == [(FIRST, 0, 19, 1)]
    consumer.acknowledge(Acknowledge.ACCEPT, ("orders", 0), 0, 3)
    with pytest.raises(LocalProtocolError, match="acknowledge all"):
        consumer.poll(0)
    consumer.acknowledge(Acknowledge.REJECT, FIRST, 4)
    consumer.acknowledge(Acknowledge.RELEASE, FIRST, 5, batch.num_rows - 1)
    assert consumer.commit() == {FIRST: None}
    assert consumer.acquired == []
    kinds = {offset: kind for _, number, offset, kind in shares.said if number == 0}
    assert kinds == dict.fromkeys(range(4), 1) | {4: REJECT} | dict.fromkeys(range(5, 20), RELEASE)
    with pytest.raises(LocalProtocolError, match="not given to this member"):
        consumer.acknowledge(Acknowledge.ACCEPT, FIRST, 0)
    rows = poll_rows(consumer, 35, consumer.acknowledge)
    assert [row for row in rows if row[2] == 2] == [(0, n, 2) for n in range(5, 20)]


def test_a_renewed_record_stays_to_be_acknowledged(filled, shares, explicit_of):
    consumer = explicit_of()
    next_batch(consumer)
    consumer.acknowledge(Acknowledge.RENEW)
    rows = poll_rows(consumer, 20, consumer.acknowledge)
    assert rows == [(1, n, 1) for n in range(20)]
    assert consumer.commit()[FIRST] is None
    assert consumer.acquired == [(FIRST, 0, 19, 1)]
    consumer.acknowledge(Acknowledge.ACCEPT, FIRST)
    assert consumer.commit() == {FIRST: None}
    assert shares.done() == EVERY


def test_a_renewal_goes_with_the_next_poll_be_there_rows_left(filled, shares, explicit_of):
    consumer = explicit_of()
    next_batch(consumer)
    consumer.acknowledge(Acknowledge.RENEW)
    assert rows_of(consumer.poll(0)) == [(1, n, 1) for n in range(20)]
    until(lambda: {kind for *_, kind in shares.said} == {RENEW})
    assert not filled.asked("ShareFetch")[1:]


def test_who_cannot_renew_is_told(filled, shares, explicit_of):
    filled.versions |= {"ShareFetch": (1, 1), "ShareAcknowledge": (1, 1)}
    consumer = explicit_of()
    next_batch(consumer)
    with pytest.raises(UnsupportedVersion, match=r"RENEW needs brokers of Kafka 4\.2"):
        consumer.acknowledge(Acknowledge.RENEW)
    with pytest.raises(UnsupportedVersion, match="record_limit needs"):
        explicit_of(share_acquire_mode="record_limit").poll(PATIENCE_S)


def test_who_meets_an_error_gives_the_last_batch_back(filled, shares, member_of):
    consumer = member_of()
    rows = rows_of(next_batch(consumer))
    next_batch(consumer)
    consumer.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert shares.done() == {("orders", number, offset) for number, offset, _ in rows}
    assert not shares.sessions
    assert {found.state for own in shares.offsets.values() for found in own.values()} == {
        "available",
        "done",
    }


def test_a_lock_that_ran_out_is_told_and_nothing_of_it_is_taken(filled, shares, explicit_of):
    consumer = explicit_of()
    next_batch(consumer)
    with filled.at_once():
        shares.expire()
    consumer.acknowledge()
    (result,) = consumer.commit().values()
    assert "INVALID_RECORD_STATE" in str(result)
    assert "a lock ran out" in str(result)
    assert not shares.done()


def test_rows_whose_lock_may_have_run_out_are_not_handed_out(
    filled, shares, member_of, monkeypatch, caplog
):
    consumer = member_of()
    with monkeypatch.context() as late:
        in_an_hour = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)
        late.setattr(coming, "time", in_an_hour)
        assert not poll_until(consumer, lambda: len(filled.asked("ShareFetch")) > 2, "answers")
    with filled.at_once():
        shares.expire()
    assert {count for *_, count in poll_rows(consumer, 40)} == {2}
    assert set(consumer.commit().values()) == {None}, "nothing was said of what ran out"
    assert "orders-0: not handed out" in caplog.text
    assert "max.poll.records" in caplog.text


def test_what_an_answer_told_that_nobody_got_is_asked_for(filled, shares, member_of):
    """One to a heartbeat that came late: of those that follow the epoch alone is another."""

    def tell_by_the_epoch_alone(call):
        answer = shares.beat(call)
        if call.request.member_epoch == 0:
            return with_values(answer, assignment=ShareGroupHeartbeatResponse.Assignment())
        shares.members[call.request.member_id] = shares.epoch + 1
        return with_values(answer, member_epoch=shares.epoch + 1)

    filled.on("ShareGroupHeartbeat", tell_by_the_epoch_alone)
    poll_rows(member_of(), 40)


def test_a_commit_waits_for_what_a_fetch_has_taken_along(filled, shares, explicit_of):
    consumer = explicit_of()
    poll_rows(consumer, 40, consumer.acknowledge)

    def late(call):
        filled.hold(lambda: False, 0.2)
        return shares.fetch(call)

    filled.on("ShareFetch", late)
    assert consumer.poll(0.02) is None
    assert filled.asked("ShareFetch")[-1].topics
    assert set(consumer.commit().values()) == {None}
    assert shares.done() == EVERY


@pytest.mark.slow
@pytest.mark.parametrize("how", first(1, ["commit", "close"]))
def test_a_silent_leader_keeps_acknowledgements_from_no_other(filled, shares, explicit_of, how):
    given = []

    def silent_once_all_is_given(call):
        """What is acknowledged of it is never answered, whichever leader's rows come first."""
        if call.node_id == 2 and given:
            return STALL
        answer = shares.fetch(call)
        if call.node_id == 2:
            given.extend(
                part for one in answer.responses for part in one.partitions if part.records
            )
        return answer

    shares.move("orders", 1, 2)
    filled.on("ShareFetch", silent_once_all_is_given)
    consumer = explicit_of(default_api_timeout_ms=1000)
    poll_rows(consumer, 40, consumer.acknowledge)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20, 1)]
    consumer.acknowledge()
    results = getattr(consumer, how)()
    assert results[FIRST] is None
    assert "receive" in str(results[SECOND])
    assert ("orders", 0, 20) in shares.done()
    consumer.close()
    assert (1, consumer.member_id) not in shares.sessions


def test_what_is_worked_off_is_said_before_its_lock_runs_out(
    filled, shares, member_of, monkeypatch
):
    """Be there more rows of the same answer: those of a slow reader would come again for ever."""
    consumer = member_of()
    assert rows_of(next_batch(consumer)) == [(0, n, 1) for n in range(20)]
    late = SimpleNamespace(monotonic=lambda: time.monotonic() + 15, sleep=time.sleep)
    monkeypatch.setattr(exchange, "time", late)
    assert rows_of(consumer.poll(0)) == [(1, n, 1) for n in range(20)]
    assert not filled.asked("ShareFetch")[1:]
    until(lambda: shares.done() == {item for item in EVERY if item[1] == 0})
    monkeypatch.undo()
    assert consumer.commit() == {FIRST: None, SECOND: None}


@pytest.mark.slow
def test_who_wants_silence_is_told_nothing_while_there_are_rows(filled, shares, explicit_of):
    filled.on("ShareFetch", lambda call: with_values(shares.fetch(call), throttle_time_ms=1000))
    consumer = explicit_of()
    next_batch(consumer)
    consumer.acknowledge(Acknowledge.RENEW)
    began = time.monotonic()
    assert rows_of(consumer.poll(0)) == [(1, n, 1) for n in range(20)]
    assert time.monotonic() - began < 0.9
    assert not filled.asked("ShareAcknowledge")
    consumer.acknowledge()
    assert set(consumer.commit().values()) == {None}


@pytest.mark.slow
def test_a_member_that_is_given_nothing_for_long_says_that_it_is_throttled(
    filled, shares, member_of, caplog
):
    """Over its quota for requests a client gets no rows, be it for good: it looked like none."""
    over = ShareFetchResponse(throttle_time_ms=60)
    filled.on("ShareFetch", *[over] * 20, shares.fetch)
    consumer = member_of(default_api_timeout_ms=200)
    poll_rows(consumer, 40)
    said = [text for text in caplog.messages if "throttles this client, over a quota" in text]
    assert 1 <= len(said) <= 10
    assert "nothing of orders-0, orders-1 has come for 0.2 s" in said[0]


def test_no_leader_waits_for_so_long_that_locks_run_out_before_rows_arrive(
    filled, shares, member_of
):
    consumer = member_of(fetch_max_wait_ms=60_000)
    poll_rows(consumer, 40)
    poll_until(consumer, lambda: len(filled.asked("ShareFetch")) > 1, "a second fetch")
    filled.logs["orders", 0].append(b"ends the wait")
    waits = [item.max_wait_ms for item in filled.asked("ShareFetch")]
    assert (waits[0], *set(waits[1:])) == (500, 15_000)
    assert poll_rows(consumer, 1) == [(0, 20, 1)]


def test_a_leader_is_told_how_much_is_worth_an_answer(filled, shares, member_of):
    poll_rows(member_of(fetch_min_bytes=7), 1)
    assert filled.asked("ShareFetch")[0].min_bytes == 7


def test_what_a_commit_does_not_hear_of_is_an_error(filled, shares, explicit_of):
    filled.on("ShareAcknowledge", ShareAcknowledgeResponse())
    consumer = explicit_of()
    next_batch(consumer)
    consumer.acknowledge()
    (result,) = consumer.commit().values()
    assert "acknowledged, not answered" in str(result)


def test_a_second_thread_is_refused_and_so_is_who_comes_too_late(filled, shares, member_of):
    consumer, met = member_of(), []

    def poll_too():
        try:
            consumer.poll(0)
        except LocalProtocolError as error:
            met.append(str(error))

    with consumer._alone():
        thread = threading.Thread(target=poll_too)
        thread.start()
        thread.join()
    assert "another thread" in met[0]
    consumer.close()
    assert consumer.close() == {}
    for call in (lambda: consumer.poll(0), consumer.commit, lambda: iter(consumer)):
        with pytest.raises(LocalProtocolError, match="is closed"):
            call()


def test_a_handler_of_signals_calls_nothing_in_the_midst_of_a_poll(
    filled, shares, member_of, monkeypatch
):
    """What is on its way would be accepted, and may never arrive."""
    consumer, met = member_of(), []
    given = consumer._exchange.next_part

    def interrupted():
        part = given()
        if part is not None:
            for act in (consumer.commit, consumer.close, lambda: consumer.poll(0)):
                with pytest.raises(LocalProtocolError, match="in the midst of another call"):
                    act()
                met.append(act)
        return part

    monkeypatch.setattr(consumer._exchange, "next_part", interrupted)
    next_batch(consumer)
    assert len(met) == 3


def test_an_interrupt_loses_no_rows(filled, shares, member_of, monkeypatch):
    consumer = member_of()
    exchange = consumer._exchange
    given = exchange.next_part

    def interrupted():
        if given() is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(exchange, "next_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next_batch(consumer)
    monkeypatch.undo()
    assert consumer.acquired == []
    assert sorted(poll_rows(consumer, 40)) == ROWS


# Traced, an `any` that has found one ends its generator with another call, where nothing is raised.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("nth", range(1, 60))
def test_wherever_a_poll_is_interrupted_nothing_stands_still_or_is_done_unheard(
    filled, shares, member_of, nth
):
    """Where a request was made and not sent, or an answer taken and not judged, all waited 30 s."""
    consumer = member_of(max_poll_records=5)
    rows = rows_of(next_batch(consumer))
    files = {session.__file__, exchange.__file__, connection.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        rows += rows_of(next_batch(consumer))
    deadline = Deadline.after(10.0)
    while {row[:2] for row in rows} < {row[:2] for row in ROWS}:
        deadline.check("waiting for rows")
        if (batch := consumer.poll(0.02)) is not None:
            rows += rows_of(batch)
    told = [error for error in consumer.commit().values() if error is not None]
    done = {item for item in EVERY if shares.offsets[item[:2]][item[2]].state == "done"}
    assert told or done == EVERY
    assert told or len(rows) == 40


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 30))
def test_wherever_the_first_request_is_made_and_interrupted_the_next_poll_makes_another(
    filled, shares, member_of, nth
):
    """Of partitions that were not asked for yet it failed with a ValueError."""
    rows = rows_through_an_interrupt(member_of(), nth, {session.__file__})
    assert sorted(row[:2] for row in rows) == [row[:2] for row in ROWS]


def rows_through_an_interrupt(consumer, nth, files):
    """All 40 rows, from a poll that is interrupted and from those behind it."""
    rows = []
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        rows += rows_of(next_batch(consumer))
    return rows + poll_rows(consumer, 40 - len(rows))


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 40))
def test_wherever_rows_are_interrupted_on_their_way_they_come_before_their_lock_runs_out(
    filled, shares, member_of, nth
):
    """Of a generator that was interrupted as it began nothing was released: nobody got its rows."""
    files = {coming.__file__, rows_module.__file__}
    rows = rows_through_an_interrupt(member_of(), nth, files)
    assert sorted(row[:2] for row in rows) == [row[:2] for row in ROWS]


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 12))
def test_wherever_a_close_is_interrupted_another_one_goes_on_with_it(
    filled, shares, member_of, nth
):
    consumer = member_of()
    next_batch(consumer)
    files = {consumer_module.__file__, membership.__file__, keeper.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        consumer.close()
    consumer.close()
    consumer._keeper._thread.join(PATIENCE_S)
    assert not consumer._keeper._thread.is_alive()
    assert shares.members == {}


def test_what_was_taken_back_of_a_session_that_is_lost_is_not_given(
    filled, shares, member_of, monkeypatch
):
    consumer = member_of()
    given = consumer._exchange.next_part

    def interrupted():
        if given() is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(consumer._exchange, "next_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next_batch(consumer)
    monkeypatch.undo()
    (session,) = consumer._exchange._sessions.values()
    with filled.at_once():
        shares.end_sessions()
    consumer._exchange._lose(session, ConnectionFailed("b", "receive", "it is gone"))
    assert {count for *_, count in poll_rows(consumer, 40)} == {2}
    assert set(consumer.commit().values()) == {None}


def test_close_alone_accepts_nothing_that_may_not_be_worked_off(filled, shares, member_of):
    """As by Java's client: in `finally`, behind an error, the last batch was not."""
    consumer = member_of()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it is about the block
        try:
            next_batch(consumer)
            raise ZeroDivisionError
        finally:
            consumer.close()
    assert not shares.done()
    consumer = member_of()
    next_batch(consumer)
    assert consumer.close(accept=True) == {FIRST: None}
    assert len(shares.done()) == 20


# Rows


def test_only_acquired_rows_are_given_and_gaps_are_acknowledged(brokers, shares, member_of):
    log = brokers.logs["orders", 0]
    kept = [NewRecord(b"v", offset_delta=delta) for delta in (1, 2, 5)]
    log.batches = [Batch(encode_batch(kept, last_offset_delta=7), 8)]
    marker = [NewRecord(bytes(6), bytes([0, 0, 0, 1]))]
    data = encode_batch(marker, base_offset=8, attributes=CONTROL | 1 << 4, producer_id=7)
    log.batches.append(Batch(data, 9))
    log.stop = 9
    shares.offsets["orders", 0][2].state = "done"
    consumer = member_of()
    rows = poll_rows(consumer, 2)
    assert rows == [(0, 1, 1), (0, 5, 1)]
    assert consumer.commit() == {FIRST: None}
    poll_until(consumer, lambda: len(shares.said) == 8, "the gaps")
    kinds = {offset: kind for _, _, offset, kind in shares.said}
    assert kinds == dict.fromkeys((0, 3, 4, 6, 7, 8), GAP) | {1: 1, 5: 1}


def test_a_damaged_batch_is_raised_behind_sound_rows_and_goes_back(filled, shares, member_of):
    log = filled.logs["orders", 0]
    damaged = bytearray(log.batches[1].data)
    damaged[-1] ^= 1
    log.batches[1] = log.batches[1]._replace(data=bytes(damaged))
    consumer = member_of()
    assert rows_of(next_batch(consumer)) == [(0, n, 1) for n in range(10)]
    with pytest.raises(CorruptRecords, match=r"orders-0.*offset 10") as raised:
        consumer.poll(1)
    assert (raised.value.topic, raised.value.partition) == FIRST
    assert rows_of(next_batch(consumer)) == [(1, n, 1) for n in range(20)]
    with pytest.raises(CorruptRecords):
        poll_until(consumer, lambda: False, "the damaged batch once more")
    assert {kind for _, number, offset, kind in shares.said if number == 0 and offset > 9} == {
        RELEASE
    }


@pytest.mark.parametrize(
    "ranges", [((5, 4),), ((0, 3), (2, 5)), ((0, 2**40),), ((-1, 3),)], ids=str
)
def test_ranges_that_are_none_are_refused(filled, shares, member_of, ranges):
    kind = ShareFetchResponse.Topic.Partition
    part = kind(
        partition_index=0,
        acquired_records=tuple(
            kind.AcquiredRecords(first_offset=first, last_offset=last) for first, last in ranges
        ),
    )
    topic_id = filled.topics["orders"].topic_id
    answer = ShareFetchResponse(
        responses=(ShareFetchResponse.Topic(topic_id=topic_id, partitions=(part,)),)
    )
    filled.on("ShareFetch", answer)
    with pytest.raises(Exception, match="acquired offsets"):
        member_of().poll(PATIENCE_S)


def test_columns_are_those_asked_for(filled, shares, member_of):
    consumer = member_of(columns=["deliveryCount", "value"])
    batch = next_batch(consumer)
    assert batch.schema.names == ["deliveryCount", "value"]
    assert batch.column(0).to_pylist() == [1] * 20
    consumer.close()
    alone = member_of(columns=["deliveryCount"])
    assert next_batch(alone).column(0).to_pylist() == [2] * 20, "the other had these, too"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # which tells of it, too
def test_a_member_that_nobody_holds_any_more_leaves(filled, shares, member_of, caplog):
    with member_of() as other:
        config = other.config
    held = ShareConsumer(config, {"orders"})
    next_batch(held)
    thread = held._keeper._thread
    del held
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
    assert "the consumer is gone and was not closed" in caplog.text
    assert filled.asked("ShareGroupHeartbeat")[-1].member_epoch == -1


# What cannot be


@pytest.mark.parametrize(
    ("topics", "columns"),
    [
        (SubscriptionPattern(".*"), ["value"]),
        ("orders", ["value"]),
        ({"a b"}, ["value"]),
        ({"orders"}, ["deliveryCount", "deliveryCount"]),
        ({"orders"}, []),
        ({"orders"}, ["speed"]),
    ],
)
def test_what_cannot_be_read_is_refused(topics, columns):
    with pytest.raises(ConfigError):
        ShareConsumer({"bootstrap.servers": "b:1", "group.id": "g"}, topics, columns=columns)


@pytest.mark.parametrize("topics", ["mails", {"bad name"}])
def test_a_refusal_of_names_does_not_lead_to_patterns(topics):
    """A share group has none, which is what it would say of them."""
    with pytest.raises(ConfigError, match="'topics' is") as caught:
        ShareConsumer({"bootstrap.servers": "b:1", "group.id": "g"}, topics)
    assert "pattern" not in str(caught.value)


def test_what_cannot_be_acknowledged_is_refused(filled, shares, member_of, explicit_of):
    implicit = member_of()
    next_batch(implicit)
    with pytest.raises(LocalProtocolError, match="is implicit: set it to explicit"):
        implicit.acknowledge()
    implicit.close()
    consumer = explicit_of()
    with pytest.raises(LocalProtocolError, match="poll first"):
        consumer.acknowledge()
    for how, *where in (("accept",), (1,)):
        with pytest.raises(ConfigError, match="ACCEPT"):
            consumer.acknowledge(how, *where)
    for where in ((None, 3), (FIRST, None, 3), (FIRST, -1), (FIRST, 3, 2), (("orders", -1), 3)):
        with pytest.raises(ConfigError):
            consumer.acknowledge(Acknowledge.ACCEPT, *where)
    with pytest.raises(LocalProtocolError, match="nothing of orders-1"):
        consumer.acknowledge(Acknowledge.ACCEPT, SECOND)


def test_a_broker_that_is_away_is_said_and_comes_back(filled, shares, member_of, caplog):
    caplog.set_level(logging.WARNING)
    consumer = member_of()
    poll_rows(consumer, 40)
    with filled.at_once():
        shares.end_sessions()
        filled.hang_up(1)
    filled.logs["orders", 0].append(b"later")
    assert (0, 20, 1) in poll_until(
        consumer, lambda: shares.done() >= EVERY | {("orders", 0, 20)}, "all"
    )


def test_other_threads_get_on_beside_one_that_polls_without_waiting(filled, member_of):
    consumer = member_of()
    poll_rows(consumer, 40)
    assert polls_per_turn(consumer) < 2
