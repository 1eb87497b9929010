"""A fake coordinator that keeps where share groups start."""

from __future__ import annotations

from pyspark_kafkaproto.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from pyspark_kafkaproto.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from pyspark_kafkaproto.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
)
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import describing, share


class FakeShareCoordinator:
    """Share groups without members, and the offsets of each.

    `starts`: group to {(topic, partition): (start offset, lag)}; an offset of -1 is none.
    """

    def __init__(self, brokers, **starts):
        self.starts = {group: dict(own) for group, own in starts.items()}
        self.leaderless = set()
        FakeCoordinator(brokers)
        describing(brokers, *map(share, starts))
        brokers.on("DescribeShareGroupOffsets", self.describe)
        brokers.on("AlterShareGroupOffsets", self.alter)
        brokers.on("DeleteShareGroupOffsets", self.delete)

    def describe(self, call):
        """The answer to a DescribeShareGroupOffsets; version 0 has no lag."""
        has_lag = call.header.api_version > 0
        part = DescribeShareGroupOffsetsResponse.Group

        def place(item, start, lag):
            if item in self.leaderless:
                return part.Topic.Partition(partition_index=item[1], error_code=5)
            return part.Topic.Partition(
                partition_index=item[1], start_offset=start, lag=lag if has_lag else -1
            )

        return DescribeShareGroupOffsetsResponse(
            groups=tuple(
                part(
                    group_id=asked.group_id,
                    topics=tuple(
                        part.Topic(topic_name=item[0], partitions=(place(item, *found),))
                        for item, found in self.starts.get(asked.group_id, {}).items()
                    ),
                )
                for asked in call.request.groups
            )
        )

    def alter(self, call):
        """The answer to an AlterShareGroupOffsets, which is noted in `starts`."""
        own = self.starts.setdefault(call.request.group_id, {})
        own |= {
            (topic.topic_name, item.partition_index): (item.start_offset, 0)
            for topic in call.request.topics
            for item in topic.partitions
        }
        return altered(call, lambda *_: 0)

    def delete(self, call):
        """The answer to a DeleteShareGroupOffsets, which is noted there."""
        own = self.starts[call.request.group_id]
        asked = {topic.topic_name for topic in call.request.topics}
        gone = asked - {topic for topic, _ in own}
        for item in [item for item in own if item[0] in asked]:
            del own[item]
        part = DeleteShareGroupOffsetsResponse.Topic
        return DeleteShareGroupOffsetsResponse(
            responses=tuple(
                part(topic_name=name, error_code=3 if name in gone else 0) for name in asked
            )
        )


def altered(call, code_of):
    """An AlterShareGroupOffsets answer with a code for each topic's name and partition."""
    part = AlterShareGroupOffsetsResponse.Topic
    return AlterShareGroupOffsetsResponse(
        responses=tuple(
            part(
                topic_name=topic.topic_name,
                partitions=tuple(
                    part.Partition(
                        partition_index=item.partition_index,
                        error_code=code_of(topic.topic_name, item.partition_index),
                    )
                    for item in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
    )
