"""Partitions that a leader refuses for good, in each protocol: the others are read all the same."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import told
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests import fake_log
from tests.fake_broker import DEFAULT, late
from tests.fake_sessions import with_values
from tests.unit.client.group.polling import PATIENCE_S, poll_until, rows_of

CORRUPT_MESSAGE, DENIED = 2, 29


def poll_past_errors(consumer, is_enough):
    """Partition and offset of what came, and the errors beside it, until that is enough."""
    rows, errors = [], []
    deadline = Deadline.after(PATIENCE_S)
    while not is_enough(rows, errors):
        deadline.check(f"waiting; there are {len(rows)} rows, {len(errors)} errors")
        try:
            rows += rows_of(consumer.poll(0.05))
        except BrokerError as error:
            errors.append(str(error))
    return rows, errors


def refusing(brokers, code, partitions=frozenset({1})):
    """A Fetch answered as ever, but for these partitions of `orders`."""

    def refused(item):
        is_one = item.partition_index in partitions
        return with_values(item, error_code=code, records=None) if is_one else item

    def answer(call):
        said = fake_log.fetch(brokers, call)
        topics = (
            with_values(topic, partitions=tuple(map(refused, topic.partitions)))
            for topic in said.responses
        )
        return with_values(said, responses=tuple(topics))

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"), [(DENIED, "READ on the topic"), (CORRUPT_MESSAGE, "CORRUPT_MESSAGE")]
)
def test_a_partition_that_is_refused_keeps_no_other_from_being_read(
    filled, coordinator, member_of, code, said
):
    """All of an answer was dropped for one of them, and fetched again at once, without an end."""
    filled.on("Fetch", refusing(filled, code))
    consumer = member_of()
    rows, errors = poll_past_errors(
        consumer, lambda rows, errors: len(rows) >= 20 and len(errors) > 1
    )
    assert rows == [(0, offset) for offset in range(20)]
    assert all(f"orders-1 at broker {filled.address(1)}" in error for error in errors)
    assert all(said in error for error in errors)
    filled.on("Fetch", DEFAULT)
    rows, _ = poll_past_errors(consumer, lambda rows, _: len(rows) >= 20)
    assert rows == [(1, offset) for offset in range(20)]


@pytest.mark.slow
def test_a_topic_that_may_not_be_seen_any_more_keeps_no_other_from_being_read(
    filled, group, consumer_of
):
    """Its leaders are looked up once more, together with those of the others."""
    filled.add_topic("secret", 3)
    consumer = consumer_of(["orders", "secret"])
    poll_until(consumer, lambda: consumer.positions.get(("orders", 1)) == 20, "what is there")
    filled.topics["secret"].error_code = DENIED
    filled.topics["orders"].move(0, 2)
    filled.logs["orders", 0].fill(1)
    consumer._reading._read_anew()
    rows, errors = poll_past_errors(consumer, lambda rows, errors: len(rows) >= 10 and errors)
    assert rows == [(0, offset) for offset in range(20, 30)]
    assert all("topic 'secret': TOPIC_AUTHORIZATION_FAILED" in error for error in errors)


@pytest.mark.slow
def test_what_is_refused_is_asked_for_again_however_much_the_others_have(
    filled, coordinator, member_of, monkeypatch
):
    """A right may be given meanwhile, and nobody would see that it was."""
    monkeypatch.setattr(told, "_AGAIN_S", 0.1)
    filled.on("Fetch", refusing(filled, DENIED))
    consumer = member_of()
    with pytest.raises(BrokerError, match="READ on the topic"):
        poll_until(consumer, lambda: False, "the error")
    filled.on("Fetch", DEFAULT)
    rows = []
    deadline = Deadline.after(PATIENCE_S)
    while (1, 19) not in rows:
        deadline.check("waiting for what may be read by now")
        filled.logs["orders", 0].append(b"more")  # each poll has something
        with suppress(BrokerError):
            rows += rows_of(consumer.poll(0.5))


@pytest.mark.slow
def test_where_all_is_refused_no_leader_is_asked_again_at_once(filled, coordinator, member_of):
    """Each poll of a few milliseconds was a connection of its own."""
    filled.on("Fetch", refusing(filled, DENIED, {0, 1}))
    consumer = member_of(retry_backoff_ms=200)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(BrokerError, match="READ on the topic"):
            poll_until(consumer, lambda: False, "the error")
    assert time.monotonic() - began > 0.4


@pytest.mark.slow
def test_whoever_pauses_before_each_poll_is_given_rows_beside_what_is_refused(
    filled, group, consumer_of
):
    """Each time all that was under way was dropped: polls shorter than answers gave nothing."""
    filled.add_topic("idle")
    filled.on("Fetch", refusing(filled, DENIED))
    consumer = consumer_of(["orders", "idle"])
    poll_past_errors(consumer, lambda rows, errors: len(rows) >= 20 and errors)
    filled.on("Fetch", late(filled, refusing(filled, DENIED)))
    filled.logs["orders", 0].fill(1)

    def pause(rows, _):
        consumer.pause({("idle", 0)})
        return rows

    rows, _ = poll_past_errors(consumer, pause)
    assert rows == [(0, offset) for offset in range(20, 30)]
