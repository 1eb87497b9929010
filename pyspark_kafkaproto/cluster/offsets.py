"""Offsets at the leaders: earliest, latest, by timestamp. One ListOffsets per leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby

from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2

_CONSUMER = -1
_NO_OFFSET = -1
_READ_COMMITTED = 1


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
    if not timestamps:
        return {}
    isolation_level = _READ_COMMITTED if router.config.is_read_committed else 0

    def make_request(partitions: list[TopicPartition]) -> ListOffsetsRequest:
        topics = tuple(
            ListOffsetsRequest.Topic(
                name=topic,
                partitions=tuple(
                    ListOffsetsRequest.Topic.Partition(
                        partition_index=item.partition, timestamp=timestamps[item]
                    )
                    for item in group
                ),
            )
            for topic, group in groupby(partitions, key=lambda item: item.topic)
        )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation_level,
            topics=topics,
            # How long the broker may look into tiered storage; its default is not at all.
            timeout_ms=int(router.config.request_timeout_s * 1000),
        )

    return router.ask_leaders("list offsets", timestamps.keys(), make_request, _read)


def list_offsets_at(
    router: Router, partitions: Collection[TopicPartition], timestamp: int
) -> dict[TopicPartition, int | None]:
    """As `list_offsets`, with one timestamp for all."""
    return list_offsets(router, dict.fromkeys(partitions, timestamp))


def _read(answer: ListOffsetsResponse) -> dict[TopicPartition, int | BrokerError | None]:
    results: dict[TopicPartition, int | BrokerError | None] = {}
    for topic in answer.topics:
        for found in topic.partitions:
            partition = TopicPartition(topic.name, found.partition_index)
            if found.error_code:
                results[partition] = BrokerError(
                    found.error_code, "ListOffsets", f"partition {partition}"
                )
            else:
                results[partition] = None if found.offset == _NO_OFFSET else found.offset
    return results
