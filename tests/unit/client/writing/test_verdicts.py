"""What an error means for a batch, and what the last one is told with."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch, Rows, Span
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.client.writing.verdicts import (
    Verdict,
    after_last_try,
    cannot_go_on,
    verdict_on,
)
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.error_codes import (
    INVALID_RECORD,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.exit_codes import exit_code_of
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import ClientConfig, ProducerConfig

CONFIG = ProducerConfig(
    client=ClientConfig.parse({"bootstrap.servers": "b-1:9092"}), retries=1, acks=-1
)
PART = {"doubtful": (1,)}


def batch(*order, doubtful=(), may_be_written=False):
    """One record at this place; `doubtful` is that of the one that it is a part of."""
    rows = [Span(Rows(0, None), None, 0, 1)]
    return Batch(b"", 1, order, 0, rows, doubtful=doubtful, may_be_written=may_be_written)


def queue_of(*returned, producer_id=1000, is_transactional=False):
    sequences = Sequences(Identity(producer_id, 0, is_transactional))
    return PartitionQueue(TopicPartition("orders", 0), sequences, 1000, returned=list(returned))


def judged(queue, one, code):
    return verdict_on(queue, one, ProduceResponse.Topic.Partition(index=0, error_code=code))


SENT = batch(1, may_be_written=True)
BEHIND = batch(2, may_be_written=True)


@pytest.mark.parametrize(
    ("code", "one", "behind", "verdict"),
    [
        (OUT_OF_ORDER_SEQUENCE_NUMBER, batch(1), [BEHIND], Verdict.FORGOTTEN),
        (OUT_OF_ORDER_SEQUENCE_NUMBER, SENT, [BEHIND], Verdict.UNSURE),
        (OUT_OF_ORDER_SEQUENCE_NUMBER, SENT, [], Verdict.FORGOTTEN),
        (OUT_OF_ORDER_SEQUENCE_NUMBER, SENT, [batch(2)], Verdict.FORGOTTEN),
        (OUT_OF_ORDER_SEQUENCE_NUMBER, batch(1, 0, **PART), [], Verdict.FATAL),
        (OUT_OF_ORDER_SEQUENCE_NUMBER, SENT, [batch(2, 0, doubtful=(2,))], Verdict.FATAL),
        (UNKNOWN_PRODUCER_ID, SENT, [BEHIND], Verdict.FORGOTTEN),
        (UNKNOWN_PRODUCER_ID, batch(1, 0, **PART), [], Verdict.FATAL),
    ],
)
def test_a_broker_that_does_not_know_where_it_is_has_forgotten_or_is_asked_for_what_comes_behind(
    code, one, behind, verdict
):
    assert judged(queue_of(*behind), one, code)[0] is verdict
    is_asked = verdict is Verdict.UNSURE
    in_one = queue_of(*behind, is_transactional=True)
    assert judged(in_one, one, code)[0] is (verdict if is_asked else Verdict.FATAL)


def test_of_one_whose_witness_was_taken_apart_nothing_tells():
    _, error = judged(queue_of(batch(2, 0, doubtful=(2,))), SENT, OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert "may be written: the batch behind it would show that" in str(error)
    assert "orders-0, row 0" in str(error)


def test_records_that_a_witness_must_not_have_end_the_write():
    queue = queue_of(SENT, BEHIND)
    assert judged(queue, BEHIND, INVALID_RECORD)[0] is Verdict.REFUSED
    queue.call_witnesses(SENT)
    assert judged(queue, BEHIND, INVALID_RECORD)[0] is Verdict.FATAL


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"error_message": "no key"},
        {"record_errors": (ProduceResponse.Topic.Partition.RecordError(batch_index=0),)},
    ],
    ids=["nothing", "why", "which"],
)
def test_a_record_that_is_too_large_decompressed_is_guessed_where_the_broker_says_nothing(said):
    """So do brokers of Kafka 4.4, whose log alone has the size and the limit."""
    told = ProduceResponse.Topic.Partition(index=0, error_code=INVALID_RECORD, **said)
    _, error = verdict_on(queue_of(), SENT, told)
    assert ("max.decompressed.message.bytes" in str(error)) is (not said)


@pytest.mark.parametrize(
    ("is_transactional", "told"),
    [(False, "the write cannot go on"), (True, "the transaction cannot go on; abort it")],
)
def test_what_is_in_the_way_of_what_comes_next_is_named(is_transactional, told):
    error = cannot_go_on(queue_of(is_transactional=is_transactional), SENT)
    assert f"with both {told}" in str(error)
    assert "orders-0, row 0" in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokerError(NOT_ENOUGH_REPLICAS, "Produce", "orders-0, row 0", "its text"), 1),
        (ConnectionFailed("b-1:9092", "receive", "it hangs up"), 4),
        (DeadlineExceeded("broker b-1:9092: an answer to Produce", 30.0), 4),
    ],
    ids=["refused", "hung up", "silent"],
)
def test_the_last_try_ends_with_its_own_error_and_that_it_was_the_last(error, code):
    one = batch(1)
    one.tries = 2
    last = after_last_try(error, queue_of(), one, CONFIG)
    assert type(last) is type(error)
    assert exit_code_of(last) == code
    assert "tried 2 times (retries is 1)" in str(last)
    assert "orders-0" in str(last)
    for word in ("its text", "b-1:9092", "hangs up", "not done within 30 s"):
        assert (word in str(last)) == (word in str(error))


@pytest.mark.parametrize(
    ("hang_ups", "asked_bytes", "is_blamed"),
    [(2, 1 << 16, True), (1, 1 << 16, False), (2, (1 << 16) - 1, False), (0, 1 << 20, False)],
)
def test_a_large_request_is_blamed_where_each_of_several_tries_ended_the_connection(
    hang_ups, asked_bytes, is_blamed
):
    one = batch(1)
    one.hang_ups, one.asked_bytes = hang_ups, asked_bytes
    error = ConnectionFailed("b-1:9092", "receive", "it hangs up")
    last = str(after_last_try(error, queue_of(), one, CONFIG))
    assert ("socket.request.max.bytes" in last) == is_blamed
