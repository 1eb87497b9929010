"""What users do to a consumer: end it, interrupt it, share it, give it what it cannot use."""

from __future__ import annotations

import math
import re
import signal
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from pyspark_kafkaproto.client import consumer as consumer_module
from pyspark_kafkaproto.client.consumer import Consumer
from pyspark_kafkaproto.client.group import beginning, membership, reading, seen, told
from pyspark_kafkaproto.client.group import keeper as keeping
from pyspark_kafkaproto.client.group.membership import Membership
from pyspark_kafkaproto.client.group.reading import Reading
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError, LocalProtocolError
from pyspark_kafkaproto.net import Deadline
from tests.interrupted import Interrupted
from tests.unit.client.group.polling import (
    PATIENCE_S,
    poll_rows,
    poll_until,
    rows_of,
    rows_until_idle,
)
from tests.unit.client.turns import polls_per_turn

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})


NOBODY = -1


def committed(filled):
    """{partition: offset} of the last OffsetCommit; None: there was none."""
    asked = filled.asked("OffsetCommit")
    if not asked:
        return None
    parts = [item for topic in asked[-1].topics for item in topic.partitions]
    return {item.partition_index: item.committed_offset for item in parts}


def meet(error, consumer):
    """Read all, and fail then."""
    with consumer:
        poll_rows(consumer, 40)
        raise error


def test_who_closes_is_told_what_is_given_up_while_it_may_commit(filled, member_of, noted):
    def give_up(own):
        noted.append(("revoked", own))
        consumer.commit({FIRST: 7})

    listeners = noted.listeners() | {"on_revoke": give_up}
    consumer = member_of(listeners, enable_auto_commit="false")
    poll_rows(consumer, 40)
    consumer.close()
    consumer.close()
    assert noted == [("assigned", BOTH), ("revoked", BOTH)]
    assert committed(filled) == {0: 7}


@pytest.mark.slow
def test_who_closes_in_its_listener_is_told_once(filled, member_of, noted):
    def give_up(own):
        noted.append(("revoked", own))
        consumer.close()

    consumer = member_of({"on_revoke": give_up})
    poll_rows(consumer, 40)
    consumer.close()
    assert noted == [("revoked", BOTH)]
    assert committed(filled) == {0: 20, 1: 20}


@pytest.mark.slow
@pytest.mark.parametrize("commit", [True, False])
def test_who_closes_and_is_no_member_any_more_is_told_what_others_read(
    filled, member_of, noted, commit
):
    """As by the next poll, which there is none of: what is kept by partitions has to go."""

    def let_go(own):
        noted.append(("lost", own))
        consumer.commit()  # of nothing: they are not ours
        consumer.close()

    listeners = noted.listeners() | {"on_lost": let_go}
    consumer = member_of(listeners, max_poll_interval_ms=200)
    poll_rows(consumer, 40)
    deadline = Deadline.after(PATIENCE_S)
    while consumer._membership.is_member:  # nobody polls: its keeper leaves the group
        deadline.check("the loss of the membership")
        time.sleep(0.01)
    consumer.close(commit=commit)
    consumer.close()
    assert noted == [("assigned", BOTH), ("lost", BOTH)]
    assert committed(filled) is None


@pytest.mark.slow
def test_the_time_that_a_listener_takes_is_not_that_of_leaving(filled, member_of):
    def give_up(own):
        time.sleep(0.6)
        raise ZeroDivisionError

    consumer = member_of({"on_revoke": give_up}, default_api_timeout_ms=500)
    poll_rows(consumer, 40)
    with pytest.raises(ZeroDivisionError):
        consumer.close()
    beats = [beat.member_epoch for beat in filled.asked("ConsumerGroupHeartbeat")]
    assert filled.asked("LeaveGroup") or beats[-1] == -1


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # which tells of it, too
@pytest.mark.parametrize("keeps", ["the consumer", "its batches"])
@pytest.mark.usefixtures("no_collector")
def test_a_member_that_nobody_holds_any_more_leaves_and_commits_nothing(
    filled, member_of, protocol, caplog, keeps
):
    """Else its partitions would be read by nobody until max.poll.interval.ms has passed."""
    with member_of() as other:
        config = other.config
    held = Consumer(config, {"orders"})
    poll_rows(held, 20)
    thread = held._keeper._thread
    if keeps == "its batches":
        held = iter(held)
        next(held)
    assert thread.is_alive()
    del held
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert "the consumer is gone and was not closed" in caplog.text
    assert committed(filled) is None
    if protocol == "consumer":
        assert filled.asked("ConsumerGroupHeartbeat")[-1].member_epoch == -1
    else:
        assert filled.asked("LeaveGroup")[-1].members[0].reason == "the consumer was dropped"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("ends", ["closed", "dropped"])
@pytest.mark.usefixtures("no_collector")
def test_nothing_of_what_reads_is_left_when_a_member_ends(filled, member_of, ends):
    """Sockets, and answers of many megabytes: collectors look at neither."""
    with member_of() as other:
        config = replace(other.config, max_poll_records=3)
    held = Consumer(config, {"orders"})
    poll_rows(held, 3)
    left = [weakref.ref(held._reading), *map(weakref.ref, held._router.connections.kept)]
    if ends == "closed":
        held.close()
    thread = held._keeper._thread
    del held
    assert [one() for one in left] == [None] * len(left)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.usefixtures("no_collector")
def test_what_was_given_to_be_committed_before_a_member_is_dropped_is_committed(filled, member_of):
    with member_of() as other:
        config = other.config
    held = Consumer(config, {"orders"})
    poll_rows(held, 40)
    thread = held._keeper._thread
    membership = held._membership
    with membership._lock:  # its keeper looks up when both has happened
        held.commit(wait=False)
        del held
        assert membership.is_forgotten
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert committed(filled) == {0: 20, 1: 20}


def test_rows_that_met_an_error_are_not_given_up_as_read(filled, member_of, noted):
    with pytest.raises(ZeroDivisionError):
        meet(ZeroDivisionError, member_of(noted.listeners()))
    assert noted == [("assigned", BOTH)]
    assert committed(filled) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", [(Reading, "next_batch"), (Membership, "polled")])
def test_an_interrupt_of_a_poll_commits_what_polls_before_have_given(
    filled, member_of, monkeypatch, kind, where
):
    def interrupted(*_):
        raise kind

    def use(consumer):
        with consumer:
            poll_rows(consumer, 40)
            monkeypatch.setattr(*where, interrupted)
            consumer.poll(1.0)

    with pytest.raises(kind):
        use(member_of())
    assert committed(filled) == {0: 20, 1: 20}


def test_rows_that_an_interrupt_kept_from_arriving_are_not_committed(
    filled, member_of, monkeypatch
):
    given = []
    next_batch = Reading.next_batch

    def interrupted(self, deadline):
        if next_batch(self, deadline) is not None:
            raise KeyboardInterrupt

    def use(consumer):
        with consumer:
            while not given:
                given.extend(rows_of(consumer.poll(0.05)))
            monkeypatch.setattr(Reading, "next_batch", interrupted)
            poll_until(consumer, lambda: False)

    with pytest.raises(KeyboardInterrupt):
        use(member_of())
    read = {partition: offset + 1 for partition, offset in given}
    assert committed(filled) == {0: 0, 1: 0} | read


@pytest.mark.parametrize("act", ["poll", "commit", "close", "seek", "pause", "resume"])
def test_a_handler_of_signals_calls_nothing_in_the_midst_of_a_poll(
    filled, member_of, monkeypatch, act
):
    """Positions are those of rows by then that nobody was given yet."""
    consumer, kept = member_of(), []
    given = {"seek": (FIRST, 0), "pause": ({FIRST},), "resume": ({FIRST},)}.get(act, ())
    next_batch = Reading.next_batch

    def interrupted(self, deadline):
        kept.append(next_batch(self, deadline))
        if kept[-1] is not None:
            monkeypatch.setattr(Reading, "next_batch", next_batch)
            signal.raise_signal(signal.SIGUSR1)
        return kept[-1]

    def handle(*_):
        with pytest.raises(LocalProtocolError, match="this consumer is in the midst of another"):
            getattr(consumer, act)(*given)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        monkeypatch.setattr(Reading, "next_batch", interrupted)
        rows = poll_until(consumer, lambda: any(kept))
    finally:
        signal.signal(signal.SIGUSR1, before)
    rows += poll_rows(consumer, 40 - len(rows))
    assert sorted(rows) == [(p, n) for p in range(2) for n in range(20)]
    assert committed(filled) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError, LocalProtocolError])
def test_what_was_interrupted_goes_on(filled, member_of, monkeypatch, kind):
    """By whatever a handler of signals raises, as of a timer."""
    consumer = member_of()
    next_batch = Reading.next_batch

    def interrupted(self, deadline):
        if next_batch(self, deadline) is not None:
            monkeypatch.setattr(Reading, "next_batch", next_batch)
            raise kind

    monkeypatch.setattr(Reading, "next_batch", interrupted)
    with pytest.raises(kind):
        poll_until(consumer, lambda: False)
    assert sorted(poll_rows(consumer, 40)) == [(p, n) for p in range(2) for n in range(20)]


@pytest.mark.slow
def test_an_interrupt_as_a_poll_begins_takes_nothing_back_that_has_arrived(
    filled, member_of, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    consumer = member_of(max_poll_records=20)
    rows = poll_rows(consumer, 20)
    monkeypatch.setattr(Reading, "note_arrived", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(0)
    monkeypatch.undo()
    rows += poll_rows(consumer, 20)
    assert sorted(rows) == [(p, n) for p in range(2) for n in range(20)]


@pytest.mark.slow
def test_an_interrupt_takes_no_partition_back_from_where_it_was_sought(
    filled, member_of, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    consumer = member_of()
    poll_rows(consumer, 40)
    consumer.seek(FIRST, 5)
    consumer.seek(SECOND, 6)
    monkeypatch.setattr(Reading, "note_arrived", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(0)
    assert consumer.positions == {FIRST: 5, SECOND: 6}


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 12))
def test_wherever_a_seek_is_interrupted_rows_are_those_of_the_position(
    filled, consumer_of, heartbeats, nth
):
    """Nothing was passed over, or given again, unlike what `positions` says."""
    consumer = consumer_of(group_protocol="consumer")
    poll_rows(consumer, 40)
    files = {consumer_module.__file__, reading.__file__, seen.__file__, told.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        consumer.seek(FIRST, 5)
    left = 20 - consumer.positions[FIRST]
    assert left in {0, 15}
    given = poll_rows(consumer, left) if left else rows_until_idle(consumer)
    assert given == [(0, n) for n in range(20 - left, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 30))
def test_wherever_a_late_begin_is_interrupted_a_partition_begins_once(
    filled, consumer_of, heartbeats, monkeypatch, nth
):
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.02)
    filled.topics["orders"].leaders[1] = NOBODY
    consumer = consumer_of(group_protocol="consumer")
    rows = poll_rows(consumer, 20)
    filled.topics["orders"].leaders[1] = 1
    begin_later = reading.Reading._begin_later

    def interrupted(self):
        with Interrupted(nth, {reading.__file__, beginning.__file__, seen.__file__}):
            begin_later(self)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(reading.Reading, "_begin_later", interrupted)
        while len(rows) < 40:
            rows += rows_of(consumer.poll(0.01))
    while len(rows) < 40:
        rows += rows_of(consumer.poll(0.01))
    rows += rows_until_idle(consumer)
    assert sorted(rows) == [(p, n) for p in range(2) for n in range(20)]


def test_an_interrupt_of_who_works_on_rows_commits_nothing(filled, member_of):
    with pytest.raises(KeyboardInterrupt):
        meet(KeyboardInterrupt, member_of())
    assert committed(filled) is None


@pytest.mark.slow
def test_a_listener_that_fails_is_told_again(filled, member_of):
    told = []

    def begin(own):
        told.append(own)
        if len(told) == 1:
            raise ZeroDivisionError
        for partition in own:
            consumer.seek(partition, 19)

    consumer = member_of({"on_assign": begin})
    with pytest.raises(ZeroDivisionError):
        poll_until(consumer, lambda: False)
    assert not consumer.assignment
    assert sorted(poll_rows(consumer, 2)) == [(0, 19), (1, 19)]
    assert told == [BOTH, BOTH]


@pytest.mark.slow
def test_a_second_thread_is_refused(member_of):
    """Two would mix up their answers, and the brokers would be blamed."""
    listening, met = threading.Event(), []

    def use():
        for act in (lambda: consumer.poll(0), lambda: consumer.commit({FIRST: 1}), consumer.close):
            with pytest.raises(LocalProtocolError, match="another thread uses this consumer"):
                act()
            met.append(act)

    def begin(own):
        consumer.commit({FIRST: 3})  # the same thread may
        other = threading.Thread(target=use)
        other.start()
        other.join(PATIENCE_S)
        listening.set()

    consumer = member_of({"on_assign": begin})
    poll_until(consumer, listening.is_set)
    assert len(met) == 3


@pytest.mark.slow
def test_who_has_left_for_not_polling_is_told_so(filled, member_of):
    consumer = member_of(max_poll_interval_ms=200, enable_auto_commit="false")
    poll_rows(consumer, 40)
    deadline = Deadline.after(PATIENCE_S)
    while consumer.group_member.generation and consumer.member_id:
        deadline.check("its leaving")
        threading.Event().wait(0.01)
    with pytest.raises(
        BrokerError, match=r"max\.poll\.interval\.ms, 200.*the next poll joins again"
    ):
        consumer.commit()


@pytest.mark.slow
def test_it_is_said_once_that_nobody_answers(monkeypatch, caplog):
    monkeypatch.setattr(keeping, "_WORTH_A_WORD_S", 0.05)
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    with Consumer(config, {"orders"}) as consumer:
        poll_until(consumer, lambda: "127.0.0.1:1" in caplog.text, "the word")
        count = len(caplog.records)
        consumer.poll(0.1)
        assert len(caplog.records) == count
    keeper = consumer._keeper._thread
    keeper.join(PATIENCE_S)
    assert not keeper.is_alive(), "who is closed tries no more"


def test_who_is_closed_is_not_told_that_nobody_answers(monkeypatch, caplog):
    monkeypatch.setattr(keeping, "_WORTH_A_WORD_S", 0.0)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, {"orders"})
    consumer.close()
    with pytest.raises(LocalProtocolError, match="the consumer is closed"):
        consumer.poll(0)
    assert not caplog.records


@pytest.mark.parametrize(
    ("topics", "text"),
    [
        (re.compile("ord.*"), "for a pattern: SubscriptionPattern"),
        ({"^ord.*"}, r"'topics' is '\^ord\.\*': no topic is called so.*SubscriptionPattern"),
        ({"no pe!"}, "'no pe!': no topic is called so"),
        ({".."}, "no topic is called so"),
        ({"a" * 250}, "no topic is called so"),
        ({b"orders"}, "b'orders'.*no topic is called so"),
        (b"orders", "expected a set of names"),
        (iter(()), "expected a set of names, at least one"),
        (5, "expected a set of names"),
    ],
)
def test_names_that_no_topic_has_are_refused(consumer_of, brokers, topics, text):
    config = {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g"}
    with pytest.raises(ConfigError, match=text):
        Consumer(config, topics)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"on_assign": "x"}, "'on_assign' is 'x': expected something to call"),
        ({"columns": "value"}, "'columns' is 'value': expected a set of names"),
    ],
)
def test_what_a_consumer_cannot_use_is_named(brokers, given, text):
    config = {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g"}
    with pytest.raises(ConfigError, match=text):
        Consumer(config, {"orders"}, **given)


@pytest.mark.parametrize("timeout_s", [None, "1", math.nan, timedelta(seconds=1)])
def test_a_poll_for_no_time_that_there_is_says_so(filled, member_of, timeout_s):
    """By a clock that is asked about NaN no poll without rows would ever end."""
    consumer = member_of()
    with pytest.raises(ConfigError, match=r"'timeout_s' is .*expected seconds.*math\.inf"):
        consumer.poll(timeout_s)
    assert poll_rows(consumer, 40), "it goes on"


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 25))
def test_wherever_a_close_is_interrupted_another_one_goes_on_with_it(
    filled, heartbeats, consumer_of, nth
):
    """The thread of the membership went on with heartbeats, and the group waited for its rows."""
    consumer = consumer_of(group_protocol="consumer")
    poll_rows(consumer, 40)
    files = {consumer_module.__file__, membership.__file__, keeping.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files):
        consumer.close()
    consumer.close()
    consumer._keeper._thread.join(PATIENCE_S)
    assert not consumer._keeper._thread.is_alive()
    assert not any(one.is_open for one in consumer._router.connections.kept)


@pytest.mark.slow
def test_a_consumer_that_is_closed_says_so(member_of):
    consumer = member_of()
    poll_rows(consumer, 40)
    consumer.close()
    for act in (
        lambda: consumer.poll(0),
        lambda: consumer.seek(FIRST, 1),
        lambda: consumer.pause({FIRST}),
        lambda: consumer.commit({FIRST: 1}),
        lambda: list(consumer),
    ):
        with pytest.raises(LocalProtocolError, match="the consumer is closed"):
            act()


@pytest.mark.parametrize("is_automatic", [True, False])
def test_offsets_are_not_to_be_committed_by_a_transaction_and_automatically(
    member_of, caplog, is_automatic
):
    consumer = member_of(enable_auto_commit=str(is_automatic).lower())
    poll_rows(consumer, 40)
    assert consumer.group_member == consumer.group_member
    said = [item.message for item in caplog.records if "enable.auto.commit" in item.message]
    assert len(said) == is_automatic


def test_other_threads_get_on_beside_one_that_polls_without_waiting(filled, member_of):
    """Its membership is kept by one of them."""
    consumer = member_of()
    poll_rows(consumer, 40)
    assert polls_per_turn(consumer) < 2
