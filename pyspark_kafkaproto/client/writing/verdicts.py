"""What a broker's error code for one batch means for it. Pure.

Of most codes the table of `error_codes` says whether they are tried again or fatal. Those about the
producer and its sequence numbers, and those about single records, are told apart here.
Protocol: KIP-98, KIP-360 (what a client may do about lost producer state), KIP-467.
"""

from __future__ import annotations

from enum import Enum

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.cluster.transactions import ADVICE
from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    CORRUPT_MESSAGE,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    INVALID_TOPIC_EXCEPTION,
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_PRODUCER_ID,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    LocalProtocolError,
)
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import ProducerConfig

TOO_LARGE = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE})
_ABOUT_RECORDS = TOO_LARGE | {INVALID_TIMESTAMP, INVALID_RECORD}
_ABOUT_THE_PRODUCER = frozenset(
    {OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH}
)
# Found before anything is appended, as what a coordinator says when a leader asks it first
# (KIP-890). All others can come after it: a leader that is deposed while it waits for its followers
# says NOT_LEADER_OR_FOLLOWER.
_NOT_APPENDED = (
    _ABOUT_RECORDS
    | _ABOUT_THE_PRODUCER
    | {CORRUPT_MESSAGE, NOT_ENOUGH_REPLICAS, CONCURRENT_TRANSACTIONS}
)

# A broker that is started again hangs up, too: once, and on requests of any size.
_MANY_HANG_UPS = 2
_LARGE_BYTES = 1 << 16

WITHOUT_IDEMPOTENT_WRITE = "enable.idempotence=false does without"
_ADVICE = {
    **ADVICE,
    CLUSTER_AUTHORIZATION_FAILED: WITHOUT_IDEMPOTENT_WRITE,
    INVALID_TOPIC_EXCEPTION: "a topic of the brokers' own, which no client writes to",
    MESSAGE_TOO_LARGE: "larger than the topic's max.message.bytes: raise that, or make it smaller",
    RECORD_LIST_TOO_LARGE: "larger than a log segment (segment.bytes) of the broker",
    UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's message.format.version is older than 0.11, which "
    "knows no idempotence, transactions or headers: raise that, or do without them "
    "(enable.idempotence=false)",
}

# Where a broker says neither why nor which record: what a sound batch may meet.
_ADVICE_UNSAID = {
    INVALID_RECORD: "no reason given: the broker's log has one; perhaps a record of a compressed "
    "batch is larger than the topic's max.decompressed.message.bytes (Kafka 4.4): raise that, or "
    "make it smaller",
}

# What a try may end with.
Failure = BrokerError | ConnectionFailed | DeadlineExceeded


class Verdict(Enum):
    """What becomes of a batch that a broker gave an error for."""

    WRITTEN = "it was written before, and later ones too, so that the broker has forgotten it"
    LATER = "sent again, perhaps elsewhere"
    OVERTOOK = "sent again, after those before it"
    UNSURE = "sent again, after those behind it: if one of them is written, it is, too"
    FORGOTTEN = "sent again under a new epoch: the broker lost what it knew of this producer"
    REFUSED = "some of its records can never be written"
    FATAL = "fails the write"


def verdict_on(
    queue: PartitionQueue, batch: Batch, data: ProduceResponse.Topic.Partition
) -> tuple[Verdict, BrokerError]:
    """The verdict, and the error to remember or to raise, which names partition, rows and size.

    Where the code can come after the batch was appended, the batch `may_be_written` from here on.
    """
    code = data.error_code
    batch.may_be_written |= code not in _NOT_APPENDED
    text = "; ".join(filter(None, (data.error_message, _ADVICE.get(code))))
    if not text and not data.record_errors:
        text = _ADVICE_UNSAID.get(code, "")
    error = BrokerError(code, "Produce", f"{queue.partition}, {batch}", text)
    is_told_apart = queue.identity.is_idempotent and code in _ABOUT_RECORDS | _ABOUT_THE_PRODUCER
    is_old = is_told_apart and queue.is_passed(batch) and batch.may_be_written
    if is_old or code == DUPLICATE_SEQUENCE_NUMBER:
        if batch.overtaken_by is not None:
            return Verdict.FATAL, out_of_order(queue, batch, batch.overtaken_by)
        return Verdict.WRITTEN, error
    if code in _ABOUT_RECORDS:
        if batch in queue.witnesses:
            return Verdict.FATAL, _witness_refused(error)
        return Verdict.REFUSED, error
    if is_told_apart:
        return _about_sequences(queue, batch, error)
    return (Verdict.LATER if error.error.is_retriable else Verdict.FATAL), error


def _about_sequences(
    queue: PartitionQueue, batch: Batch, error: BrokerError
) -> tuple[Verdict, BrokerError]:
    if error.code == OUT_OF_ORDER_SEQUENCE_NUMBER and queue.sequences.is_overtaking(batch):
        return Verdict.OVERTOOK, error
    if batch.doubtful:
        return Verdict.FATAL, _written_whole(error)
    if error.code == OUT_OF_ORDER_SEQUENCE_NUMBER and batch.may_be_written:
        if queue.can_call_witnesses(batch):
            return Verdict.UNSURE, error
        if queue.has_parts_behind(batch):
            return Verdict.FATAL, _nothing_tells(error)
    # Inside a transaction nothing can be begun anew but the transaction.
    return (Verdict.FATAL if queue.identity.is_transactional else Verdict.FORGOTTEN), error


def _written_whole(error: BrokerError) -> BrokerError:
    """The error of what is left of a batch that a broker refused, and has from an earlier try."""
    return error.saying(
        "a part of a batch that was refused when it was sent again, and whose first try seems to "
        "be written: what the topic takes has changed in between. It is not written once more"
    )


def _nothing_tells(error: BrokerError) -> BrokerError:
    """The error of a batch that the one behind it would tell of, were that still whole."""
    return error.saying(
        "sent before, and may be written: the batch behind it would show that, but was refused "
        "when it was sent again, and taken apart. It is not written once more"
    )


def _witness_refused(error: BrokerError) -> BrokerError:
    """The same where it is refused just then."""
    return error.saying(
        "what was sent before it may be written, as it may be itself, and nothing tells: neither "
        f"is written once more; {error.message}"
    )


def out_of_order(queue: PartitionQueue, batch: Batch, later: Batch) -> BrokerError:
    """The error where the broker took `later` and not `batch`, which comes before it."""
    return BrokerError(
        OUT_OF_ORDER_SEQUENCE_NUMBER, "Produce", f"{queue.partition}, {batch}",
        f"not written, but {later}, which comes after it, is: the broker had forgotten this "
        "producer",
    )  # fmt: skip


def cannot_go_on(queue: PartitionQueue, batch: Batch) -> LocalProtocolError:
    """The error where `batch`, of unknown outcome, or rows before it, fell out.

    What comes after such rows gets new sequences, to which `batch` with its old ones could fit. A
    new epoch would tell them apart: inside a transaction there is none to be had, and under one a
    broker does not know again what it has.
    """
    what = "the write cannot go on"
    if queue.identity.is_transactional:
        what = "the transaction cannot go on; abort it and write again"
    return LocalProtocolError(
        f"{queue.partition}, {batch}: sent, and may still be written, while rows up to it were "
        f"refused: with both {what}"
    )


def given_up(queue: PartitionQueue, batch: Batch, config: ProducerConfig) -> DeadlineExceeded:
    """The error of a batch that was not delivered in its time."""
    what = f"write {batch} to {queue.partition}"
    error = DeadlineExceeded(what, config.delivery_timeout_s, batch.failures)
    _advise(error, batch, config)
    return error


def after_last_try(
    error: Failure, queue: PartitionQueue, batch: Batch, config: ProducerConfig
) -> Failure:
    """The last error of a batch, and that it was the last."""
    last = _after_last_try(error, queue, batch, config.retries)
    _advise(last, batch, config)
    return last


def _advise(error: KafkaProtoError, batch: Batch, config: ProducerConfig) -> None:
    """Say what may be the cause where a large request ends the connection each time."""
    if batch.hang_ups < _MANY_HANG_UPS or batch.asked_bytes < _LARGE_BYTES:
        return
    request, size = config.client.named("max.request.size"), config.client.named("batch.size")
    error.add_line(
        f"{batch.hang_ups} tries in a row ended with the connection, while a request with "
        f"{batch.asked_bytes} bytes of records was under way. A broker, or what stands before it, "
        "hangs up on requests that are too large for it (socket.request.max.bytes): if so, raise "
        f"that, or set {request} ({config.max_request_size}) and {size} ({config.batch_size}) lower"
    )


def _after_last_try(error: Failure, queue: PartitionQueue, batch: Batch, retries: int) -> Failure:
    tried = f"tried {batch.tries} times (retries is {retries})"
    if isinstance(error, BrokerError):  # it names the batch
        return error.saying("; ".join(filter(None, (error.message, tried))))
    tried = f"write {batch} to {queue.partition} was {tried}"
    if isinstance(error, ConnectionFailed):
        return ConnectionFailed(error.broker, error.stage, f"{error.reason}; {tried}")
    return DeadlineExceeded(f"{tried}; {error.what}", error.timeout_s, error.attempts)
