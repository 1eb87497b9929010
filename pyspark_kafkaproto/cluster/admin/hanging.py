"""Transactions that hang: open in a partition, and no coordinator will end them there (KIP-664).

Found as Kafka's own tool finds them, by what a partition's leader and the coordinators say: the
leader has a transaction open, and no coordinator knows its producer, or the one that does has not
got this partition among those that are to have a marker. `read_committed` reads nothing behind it
until somebody writes one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.cluster.admin.producers import ActiveProducer, describe_producers
from pyspark_kafkaproto.cluster.asking import Question, nothing_done_yet
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.cluster.transactions import (
    ONGOING,
    DescribedTransaction,
    find_transactions,
    list_transactions,
)
from pyspark_kafkaproto.error_codes import INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_COORDINATORS = "__transaction_state"  # leads a partition of it who coordinates what is kept there
# What a leader that remembers none has seen of coordinators: not more than any epoch there is.
_LEAST_COORDINATOR_EPOCH = 0
# Coordinators of Kafka 4.3.0 and 4.4.0 let go of a partition without a leader, and say that it is
# committed.
_COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
_SHOWN = 10
_ADVICE: Mapping[int, str] = {
    INVALID_PRODUCER_EPOCH: "the producer has a newer epoch here by now: look once more "
    "(kafkaproto transactions producers)",
    TRANSACTION_COORDINATOR_FENCED: "a coordinator has written here in a newer epoch by now: look "
    "once more (kafkaproto transactions producers)",
}


class HangingTransaction(NamedTuple):
    """A transaction open in `partition`, that no coordinator will end there.

    `producer` is as the leader remembers it: `transaction_start_offset` is what `abort_transaction`
    takes. `transactional_id` and `state` are what a coordinator knows of that producer, None where
    none knows it.
    """

    partition: TopicPartition
    producer: ActiveProducer
    transactional_id: str | None
    state: str | None


def find_hanging_transactions(
    router: Router, partitions: Collection[TopicPartition], longer_than_s: float
) -> list[HangingTransaction]:
    """Those of `partitions` whose last record is older than `longer_than_s`, sorted.

    Raises:
        BrokerError: a partition is not there, or its producers may not be seen; `usable` has what
            hangs in the others. Or a coordinator is away, which may know what seems to hang.
    """
    before_ms = _now_ms() - longer_than_s * 1000
    try:
        told = describe_producers(router, partitions)
    except KafkaProtoError as error:
        error.usable = _hanging(router, error.usable or {}, before_ms)
        raise
    return _hanging(router, told, before_ms)


def _hanging(
    router: Router,
    told: Mapping[TopicPartition, Collection[ActiveProducer]],
    before_ms: float,
) -> list[HangingTransaction]:
    candidates = {
        (partition, producer): None
        for partition, producer in _open(told)
        # One without a timestamp is as old as can be, to Kafka's tool too.
        if (producer.last_timestamp_ms or -1) < before_ms
    }
    with nothing_done_yet():
        owners = _owners(router, {producer.producer_id for _, producer in candidates})
        found = [
            _as_owned(partition, producer, owners.get(producer.producer_id))
            for partition, producer in candidates
            if not _is_awaited(partition, owners.get(producer.producer_id))
        ]
        # What ended between the two questions was open to the leader, and over to its coordinator.
        again = describe_producers(router, {item.partition for item in found})
    still_open = set(_open(again))
    return sorted(item for item in found if (item.partition, item.producer) in still_open)


def _open(
    told: Mapping[TopicPartition, Collection[ActiveProducer]],
) -> Iterator[tuple[TopicPartition, ActiveProducer]]:
    for partition, producers in told.items():
        for producer in producers:
            if producer.transaction_start_offset is not None:
                yield partition, producer


def _owners(router: Router, producer_ids: Collection[int]) -> dict[int, DescribedTransaction]:
    """What coordinators know of producers, by their ids; whom none knows is left out."""
    if not producer_ids:
        return {}
    listed = list_transactions(router, producer_ids=sorted(producer_ids))
    if not set(producer_ids) <= {item.producer_id for item in listed}:
        # Who was away then, or had not taken over yet, has listed nothing.
        _await_coordinators(router)
        listed = list_transactions(router, producer_ids=sorted(producer_ids))
    by_name = {item.transactional_id: item.producer_id for item in listed}
    described = find_transactions(router, by_name)
    return {by_name[name]: item for name, item in described.items() if item is not None}


def _await_coordinators(router: Router) -> None:
    """Return once there is a coordinator for each transactional id, as far as may be seen.

    Raises:
        BrokerError: for some there is none.
    """
    deadline = router.deadline()

    def attempt() -> None:
        topology = router.topology({_COORDINATORS}, deadline)
        topic = topology.topics.get(_COORDINATORS)
        if topic is None or topic.error_code:
            return  # nobody has had a transaction yet; or this user may not see it
        try:
            for number in topic.partitions:
                topology.leader(TopicPartition(_COORDINATORS, number))
        except BrokerError as error:
            error.add_line("a coordinator that is away may know the transaction")
            raise

    router.retrying("find the coordinators of transactions", attempt, deadline)


def _is_awaited(partition: TopicPartition, owner: DescribedTransaction | None) -> bool:
    """Whether a coordinator is still to write a marker there."""
    return owner is not None and partition in owner.partitions


def _as_owned(
    partition: TopicPartition, producer: ActiveProducer, owner: DescribedTransaction | None
) -> HangingTransaction:
    if owner is None:
        return HangingTransaction(partition, producer, None, None)
    return HangingTransaction(partition, producer, owner.writer.transactional_id, owner.state)


def abort_transaction(
    router: Router, partition: TopicPartition, start_offset: int, *, even_if_live: bool
) -> ActiveProducer:
    """Write the marker that aborts what is open in `partition` from `start_offset` on.

    Returns:
        Whose transaction it was.

    Raises:
        BrokerError: there is no such partition, or this user may not; or a coordinator is away,
            which may know the transaction, and not `even_if_live`.
        ConfigError: no transaction is open there; names those that are.
        LocalProtocolError: a coordinator will end it, or says that it is committed, and not
            `even_if_live`.
    """
    told = describe_producers(router, {partition})
    by_offset = {item.transaction_start_offset: item for _, item in _open(told)}
    producer = by_offset.get(start_offset)
    if producer is None:
        starts = sorted(offset for offset in by_offset if offset is not None)
        raise ConfigError("start_offset", start_offset, _none_there(partition, starts))
    if not even_if_live:
        owner = _owners(router, {producer.producer_id}).get(producer.producer_id)
        if owner is not None and _is_awaited(partition, owner):
            raise _live(partition, start_offset, owner)
        if owner is not None and owner.state in _COMMITTED:
            raise _committed(partition, start_offset, owner)
    _write_marker(router, partition, producer)
    return producer


def _none_there(partition: TopicPartition, starts: list[int]) -> str:
    if not starts:
        return f"no transaction is open in {partition}"
    shown = ", ".join(map(str, starts[:_SHOWN]))
    more = f" and {len(starts) - _SHOWN} more" if len(starts) > _SHOWN else ""
    return f"in {partition} no transaction begins there; open are those from {shown}{more} on"


def _live(
    partition: TopicPartition, start_offset: int, owner: DescribedTransaction
) -> LocalProtocolError:
    name = owner.writer.transactional_id
    what = f"the transaction in {partition} from offset {start_offset} on is {owner.state} at the "
    what += f"coordinator of transactional id {name!r}: it does not hang. "
    if owner.state == ONGOING:
        way = "Fence its producer (fence_producers, kafkaproto transactions fence), which aborts "
        way += "all of it"
    else:
        way = "The coordinator writes its marker once the partition takes it"
    risk = "aborted here alone it may still be committed elsewhere (even_if_live, --even-if-live)"
    return LocalProtocolError(f"{what}{way}; {risk}")


def _committed(
    partition: TopicPartition, start_offset: int, owner: DescribedTransaction
) -> LocalProtocolError:
    name = owner.writer.transactional_id
    return LocalProtocolError(
        f"the transaction in {partition} from offset {start_offset} on is {owner.state} at the "
        f"coordinator of transactional id {name!r}: its records there may be acknowledged, as "
        "coordinators of Kafka 4.3.0 and 4.4.0 write no marker where nobody leads (KAFKA-20734). "
        f"Let {name!r} commit a transaction with records in {partition}, which shows these, too; "
        "aborted they are lost (even_if_live, --even-if-live). On brokers before 3.6, or without "
        "transaction.partition.verification.enable, they may be late ones of a transaction that "
        "was aborted before: that commit would show these, and --even-if-live is right"
    )


def _write_marker(router: Router, partition: TopicPartition, producer: ActiveProducer) -> None:
    """One marker in the producer's own epoch, as ends of version 1 are.

    Those of version 2 raise the epoch, which is the coordinator's business: leaders take the other
    kind whichever version the producer's transaction has.
    """
    epoch = producer.coordinator_epoch
    topic = WriteTxnMarkersRequest.Marker.Topic(
        name=partition.topic, partition_indexes=(partition.partition,)
    )
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=(topic,),
        coordinator_epoch=_LEAST_COORDINATOR_EPOCH if epoch is None else epoch,
    )
    request = WriteTxnMarkersRequest(markers=(marker,))
    question: Question[TopicPartition, None] = Question(
        "abort the transaction",
        lambda _: request,
        lambda answer, _: _read_marked(answer, producer),
    )
    change(router, question, [partition], router.leader_places)


def _read_marked(
    answer: WriteTxnMarkersResponse, producer: ActiveProducer
) -> dict[TopicPartition, BrokerError | None]:
    results: dict[TopicPartition, BrokerError | None] = {}
    for marker in answer.markers:
        if marker.producer_id != producer.producer_id:
            why = f"about producer {marker.producer_id}, which was not asked about"
            raise RemoteProtocolError(why, where=answer.API_NAME)
        for topic in marker.topics:
            for item in topic.partitions:
                partition, code = TopicPartition(topic.name, item.partition_index), item.error_code
                subject = f"producer {producer.producer_id}:{producer.epoch} in {partition}"
                advice = _ADVICE.get(code, "")
                results[partition] = (
                    BrokerError(code, answer.API_NAME, subject, advice) if code else None
                )
    return results


def _now_ms() -> float:
    return time.time() * 1000
