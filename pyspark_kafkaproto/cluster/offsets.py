"""Offsets at the leaders: earliest, latest, last stable, by timestamp. One request per leader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, by_topic
from pyspark_kafkaproto.error_codes import (
    INVALID_RECORD,
    LEADER_NOT_AVAILABLE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from pyspark_kafkaproto.errors import BrokerError, RemoteProtocolError
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from pyspark_kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from pyspark_kafkaproto.net import Deadline

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

_CONSUMER = -1
_NO_OFFSET = -1
_KNOWS_MAX_TIMESTAMP = 7
_READ_COMMITTED = 1
_ADVICE = {
    INVALID_RECORD: "perhaps a record of a compressed batch is larger than the topic's "
    "max.decompressed.message.bytes (Kafka 4.4): raise that, or give an offset in place of a time",
    UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's message.format.version is older than 0.10, whose "
    "records have no timestamps: give an offset in place of a time",
}

_T = TypeVar("_T")
Listed = ListOffsetsResponse.Topic.Partition


class Found(NamedTuple):
    """A record's offset and its timestamp, in ms since 1970 (-1 where the question has none)."""

    offset: int
    timestamp: int


def list_offsets(
    router: Router, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """The first offset at or after each partition's timestamp.

    Args:
        router: whom to ask.
        timestamps: milliseconds since 1970, or LATEST_TIMESTAMP or EARLIEST_TIMESTAMP. Under
            read_committed the latest offset is the last stable one.

    Returns:
        Per partition the offset, or None where no record is that late.
    """
    return _ask(router, timestamps, is_committed(router, None), _offset)


def list_offsets_at(
    router: Router, partitions: Collection[TopicPartition], timestamp: int
) -> dict[TopicPartition, int | None]:
    """As `list_offsets`, with one timestamp for all."""
    return list_offsets(router, dict.fromkeys(partitions, timestamp))


def list_bounds(
    router: Router,
    partitions: Collection[TopicPartition],
    timestamp: int,
    *,
    read_committed: bool | None = None,
    deadline: Deadline | None = None,
    epochs: dict[TopicPartition, int] | None = None,
) -> dict[TopicPartition, int]:
    """Where logs begin (EARLIEST_TIMESTAMP) or end (LATEST_TIMESTAMP), which each one does.

    Args:
        router: whom to ask.
        partitions: whose.
        timestamp: which of the two; or a time: the first offset at or after it, the end where there
            is none so late.
        read_committed: whether a log ends where a transaction is open; None takes the
            configuration's isolation.level.
        deadline: when to give up; None: at the end of a call of the API.
        epochs: takes those of the leaders that told (-1 where they do not say).

    Raises:
        RemoteProtocolError: a broker names no such offset.
    """
    committed = is_committed(router, read_committed)
    timestamps = dict.fromkeys(partitions, timestamp)
    bounds = {}
    ends: Mapping[TopicPartition, int] = {}
    if timestamp >= 0:
        # Before the time: what is written between the two is late enough, and to be read.
        ends = list_bounds(
            router, partitions, LATEST_TIMESTAMP, read_committed=committed, deadline=deadline
        )
    asked = _ask(router, timestamps, committed, _offset, deadline, epochs)
    found = {item: ends.get(item) if at is None else at for item, at in asked.items()}
    for partition, offset in found.items():
        if offset is None:
            bound = "begins" if timestamp == EARLIEST_TIMESTAMP else "ends"
            raise RemoteProtocolError(
                f"it does not say where partition {partition} {bound}", where="ListOffsets"
            )
        bounds[partition] = offset
    return bounds


def list_led_ends(
    router: Router,
    partitions: Collection[TopicPartition],
    *,
    epochs: dict[TopicPartition, int] | None = None,
    passed_over: Collection[int] = (LEADER_NOT_AVAILABLE,),
) -> dict[TopicPartition, int]:
    """Where logs end, of those that somebody leads: no election is waited for.

    A broker that has died leads for some seconds yet, as the others have it; that is waited for.

    Args:
        router: whom to ask.
        partitions: whose.
        epochs: as for `list_bounds`.
        passed_over: the error codes of those that are left out.
    """
    wanted = set(partitions)
    hasty = router.not_waiting_for_leaders()
    try:
        return list_bounds(hasty, wanted, LATEST_TIMESTAMP, epochs=epochs)
    except BrokerError as error:
        told: Mapping[TopicPartition, int | None] = error.usable or {}
        refused: Mapping[TopicPartition, BrokerError] = error.refused or {}
        others = [each for each in refused.values() if each.code not in passed_over]
        if not others and wanted <= told.keys() | refused.keys():
            hasty.forget_leaders()  # or who asks again would find as little
            hasty.distrust_last()  # it may be behind: who asks again hears another one
            return {item: end for item, end in told.items() if end is not None}
        if not others or error in others:
            raise
        others[0].usable, others[0].refused = told, refused
        raise others[0] from None
    finally:
        router.learn_from(hasty)


def list_epoch_ends(
    router: Router, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where each log ends what was written up to a leader epoch (KIP-320); -1: it is not known.

    Before an offset that was told in that epoch, if the log was cut off there since.
    """

    def request(partitions: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
        topic = OffsetForLeaderEpochRequest.Topic
        return OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=tuple(
                topic(
                    topic=name,
                    partitions=tuple(
                        topic.Partition(partition=item.partition, leader_epoch=epochs[item])
                        for item in own
                    ),
                )
                for name, own in by_topic(partitions)
            ),
        )

    def read(answer: OffsetForLeaderEpochResponse) -> dict[TopicPartition, int | BrokerError]:
        results: dict[TopicPartition, int | BrokerError] = {}
        for topic in answer.topics:
            for item in topic.partitions:
                partition = TopicPartition(topic.topic, item.partition)
                results[partition] = item.end_offset
                if item.error_code:
                    subject = f"partition {partition}"
                    error = BrokerError(item.error_code, "OffsetForLeaderEpoch", subject)
                    results[partition] = error
        return results

    what = "look whether logs were cut off"
    return router.ask_leaders(what, epochs, request, read) if epochs else {}


def list_found(
    router: Router, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Found | None]:
    """As `list_offsets`, with the timestamp of what was found.

    Args:
        router: whom to ask.
        timestamps: as there, or MAX_TIMESTAMP: the record with the largest timestamp.

    Raises:
        UnsupportedVersion: brokers before Kafka 3.0 know no MAX_TIMESTAMP.
    """
    return _ask(router, timestamps, is_committed(router, None), _found)


def is_committed(router: Router, wanted: bool | None) -> bool:
    """Whether a log ends where a transaction is open; None: as isolation.level says."""
    return router.config.is_read_committed if wanted is None else wanted


def _offset(found: Listed) -> int:
    return found.offset


def _found(found: Listed) -> Found:
    return Found(found.offset, found.timestamp)


def make_request(
    router: Router, timestamps: Mapping[TopicPartition, int], *, committed: bool
) -> ListOffsetsRequest:
    """The request for what partitions of one leader hold.

    Args:
        router: whose configuration says how long a broker may look.
        timestamps: as for `list_found`.
        committed: whether a log ends where a transaction is open.
    """
    topics = tuple(
        ListOffsetsRequest.Topic(
            name=topic,
            partitions=tuple(
                ListOffsetsRequest.Topic.Partition(
                    partition_index=item.partition, timestamp=timestamps[item]
                )
                for item in own
            ),
        )
        for topic, own in by_topic(timestamps)
    )
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=_READ_COMMITTED if committed else 0,
        topics=topics,
        # How long the broker may look into tiered storage; its default is not at all.
        timeout_ms=int(router.config.request_timeout_s * 1000),
    )


def read_answer(answer: ListOffsetsResponse) -> dict[TopicPartition, Listed | BrokerError | None]:
    """What was found in each partition, None where nothing was, or its error."""
    results: dict[TopicPartition, Listed | BrokerError | None] = {}
    for topic in answer.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                subject = f"partition {partition}"
                text = _ADVICE.get(item.error_code, "")
                results[partition] = BrokerError(item.error_code, "ListOffsets", subject, text)
            elif item.offset == _NO_OFFSET:
                results[partition] = None
            else:
                results[partition] = item
    return results


def _ask(
    router: Router,
    timestamps: Mapping[TopicPartition, int],
    committed: bool,
    take: Callable[[Listed], _T],
    deadline: Deadline | None = None,
    epochs: dict[TopicPartition, int] | None = None,
) -> dict[TopicPartition, _T | None]:
    def request(partitions: list[TopicPartition]) -> ListOffsetsRequest:
        own = {item: timestamps[item] for item in partitions}
        return make_request(router, own, committed=committed)

    def read(answer: ListOffsetsResponse) -> dict[TopicPartition, _T | BrokerError | None]:
        answered = read_answer(answer)
        if epochs is not None:
            told = {item: each for item, each in answered.items() if isinstance(each, Listed)}
            epochs.update({item: each.leader_epoch for item, each in told.items()})
        return {
            item: take(found) if isinstance(found, Listed) else found
            for item, found in answered.items()
        }

    # KIP-734: before, it is a time like any other, before which there is no record.
    least = _KNOWS_MAX_TIMESTAMP if MAX_TIMESTAMP in timestamps.values() else 0
    return router.ask_leaders("list offsets", timestamps.keys(), request, read, least, deadline)
