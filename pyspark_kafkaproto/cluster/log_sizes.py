"""How many bytes partitions take at their leaders (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark_kafkaproto.cluster.asking import Question, ask
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, numbers_by_topic
from pyspark_kafkaproto.error_codes import CLUSTER_AUTHORIZATION_FAILED, NOT_LEADER_OR_FOLLOWER
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_API = "DescribeLogDirs"


def log_sizes(router: Router, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The size of each partition's log in bytes, compressed as it lies there.

    Raises:
        BrokerError: this user may not ask, or the leader's disk has failed.
    """
    question = Question("ask for log sizes", _request, _read)
    return ask(router, question, partitions, router.leader_places)


def _request(partitions: Iterable[TopicPartition]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribeLogDirsRequest.Topic(topic=topic, partitions=numbers)
            for topic, numbers in numbers_by_topic(partitions)
        )
    )


def _read(
    answer: DescribeLogDirsResponse, asked: list[TopicPartition]
) -> dict[TopicPartition, int | BrokerError]:
    check_told(answer)
    sizes = {
        TopicPartition(topic.name, item.partition_index): item.partition_size
        for folder in answer.results
        for topic in folder.topics
        for item in topic.partitions
        if not item.is_future_key
    }
    # A folder that has failed tells of no partition: one that is in no other may have been there.
    failed = next((folder for folder in answer.results if folder.error_code), None)
    return {item: sizes[item] if item in sizes else _not_there(item, failed) for item in asked}


def check_told(answer: DescribeLogDirsResponse) -> None:
    """Raise what the whole answer says, where that is an error."""
    # Before version 3 there is no code at the top: brokers refuse by telling of no folder.
    code = answer.error_code or (0 if answer.results else CLUSTER_AUTHORIZATION_FAILED)
    if code:
        raise BrokerError(code, _API, "the logs")


def _not_there(
    partition: TopicPartition, failed: DescribeLogDirsResponse.LogDir | None
) -> BrokerError:
    subject = f"partition {partition}"
    if failed is None:  # it has moved away
        return BrokerError(NOT_LEADER_OR_FOLLOWER, _API, subject)
    return BrokerError(failed.error_code, _API, subject, f"the folder {failed.log_dir} has failed")
