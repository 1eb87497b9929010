"""Who has written to a partition of late, and who has a transaction open there (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pyspark_kafkaproto.cluster.asking import cut
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, numbers_by_topic
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)

_PARTITIONS_PER_REQUEST = 500  # as many as Kafka's own tool asks about at once


class ActiveProducer(NamedTuple):
    """An idempotent or transactional producer, as a partition's leader remembers it.

    `last_timestamp_ms` is that of its last record (ms since 1970). `transaction_start_offset` is
    where its open transaction begins, None where none is open: from there on read_committed reads
    nothing. `coordinator_epoch` is that of the coordinator that ended its last transaction.
    """

    producer_id: int
    epoch: int
    last_sequence: int | None
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    transaction_start_offset: int | None


def describe_producers(
    router: Router, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
    """The producers that each partition's leader remembers, by their ids.

    Raises:
        BrokerError: there is no such partition, or this user may not read it; `usable` has the
            others.
    """
    parts = cut(_PARTITIONS_PER_REQUEST)
    return router.ask_leaders("describe producers", partitions, _request, _read, parts=parts)


def _request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=tuple(
            DescribeProducersRequest.Topic(name=topic, partition_indexes=numbers)
            for topic, numbers in numbers_by_topic(partitions)
        )
    )


def _read(
    answer: DescribeProducersResponse,
) -> dict[TopicPartition, tuple[ActiveProducer, ...] | BrokerError]:
    results: dict[TopicPartition, tuple[ActiveProducer, ...] | BrokerError] = {}
    for topic in answer.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                subject, text = f"partition {partition}", item.error_message or ""
                results[partition] = BrokerError(item.error_code, answer.API_NAME, subject, text)
            else:
                results[partition] = tuple(sorted(map(_producer, item.active_producers)))
    return results


def _producer(
    item: DescribeProducersResponse.Topic.Partition.ActiveProducer,
) -> ActiveProducer:
    return ActiveProducer(
        item.producer_id,
        item.producer_epoch,
        _known(item.last_sequence),
        _known(item.last_timestamp),
        _known(item.coordinator_epoch),
        _known(item.current_txn_start_offset),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number
