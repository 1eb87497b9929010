"""A broker that has been away: for a moment it knows the leaders, topics and ends of the past.

Seen with Kafka 4.3: a leader that was stopped (SIGSTOP) for longer than its session names itself
and its old end, without an error, for some 0.3 s after it goes on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from tests.fake_broker import metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafkaproto.messages.metadata import MetadataResponse
    from tests.fake_broker import Call, FakeCluster, FakeTopic


def behind(
    brokers: FakeCluster, name: str, topic: FakeTopic | None
) -> Callable[[Call], MetadataResponse]:
    """Metadata with the topic `name` as it was then; None: not there."""

    def answer(call: Call) -> Any:
        now = brokers.topics.pop(name)
        if topic is not None:
            brokers.topics[name] = topic
        try:
            return metadata(brokers, call)
        finally:
            brokers.topics[name] = now

    return answer


def lead_in_the_past(brokers: FakeCluster, name: str, end: int, epoch: int = -1) -> None:
    """Let node 2 lead `name`, while node 1 thinks that it does still, with logs up to `end`."""
    now = brokers.topics[name]
    then = replace(now, leaders=[1] * len(now.leaders), epochs=[0] * len(now.leaders))
    for partition in range(len(now.leaders)):
        now.move(partition, node_id=2)
    brokers.on("Metadata", behind(brokers, name, then), node=1)
    brokers.on("ListOffsets", lambda call: listed(call, offset=end, leader_epoch=epoch), node=1)


def listed(call: Call, **fields: int) -> ListOffsetsResponse:
    """An answer to ListOffsets that says the same of each partition."""
    part = ListOffsetsResponse.Topic
    return ListOffsetsResponse(
        topics=tuple(
            part(
                name=topic.name,
                partitions=tuple(
                    part.Partition(partition_index=item.partition_index, **fields)
                    for item in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
    )
