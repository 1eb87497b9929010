"""What leaders say of single partitions, and what to do about their errors. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark_kafkaproto.client.share.session import ShareSession
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.error_codes import (
    INVALID_RECORD_STATE,
    INVALID_SHARE_SESSION_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse

SWITCHED_OFF: Final = (
    "share groups are switched off in this cluster: they need Kafka 4.2, and its feature "
    "share.version to be 1 (kafkaproto features upgrade share.version=1)"
)
TOO_OLD: Final = (
    "share groups need brokers of Kafka 4.2, with the feature share.version "
    "(kafkaproto features upgrade share.version=1)"
)
_ADVICE: Final = {
    INVALID_RECORD_STATE: "a lock ran out, or the records were given to others since: none of what "
    "was acknowledged of this partition together was taken, and what is not done comes again",
    NOT_LEADER_OR_FOLLOWER: "another broker leads the partition now: what was given out by the one "
    "before comes again",
    SHARE_SESSION_LIMIT_REACHED: "the broker has as many share sessions as its "
    "group.share.max.share.sessions allows",
    SHARE_SESSION_NOT_FOUND: "the broker does not know our session any more: what it gave to us "
    "comes again",
    INVALID_SHARE_SESSION_EPOCH: "an answer of the broker was lost: what it gave to us comes again",
    UNKNOWN_TOPIC_OR_PARTITION: "the topic is gone, or another broker has the partition now: what "
    "this one gave out comes again",
    UNSUPPORTED_VERSION: SWITCHED_OFF,
}


def parts_of_answer(one: ShareSession, answer: Any) -> Iterator[tuple[TopicPartition, bytes, Any]]:
    """What an answer says of partitions that it was asked about."""
    for topic in answer.responses:
        name = one.names.get(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield TopicPartition(name, data.partition_index), topic.topic_id, data


def error_of_acknowledging(partition: TopicPartition, data: Any, kind: str) -> BrokerError | None:
    """What a partition of an answer says about what was acknowledged with the request."""
    if isinstance(data, ShareFetchResponse.Topic.Partition):
        code, text = data.acknowledge_error_code, data.acknowledge_error_message
    else:
        code, text = data.error_code, data.error_message
    return partition_error(partition, code, text, kind) if code else None


def partition_error(
    partition: TopicPartition, code: int, text: str | None, kind: str
) -> BrokerError:
    """The error that an answer of the API `kind` has of a partition."""
    return BrokerError(code, kind, f"partition {partition}", advised(text, code))


def advised(text: str | None, code: int) -> str:
    """What the broker says of an error, and what we do."""
    return "; ".join(filter(None, (text, _ADVICE.get(code, ""))))
