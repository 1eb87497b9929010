"""What members of a group tell each other through the coordinator, as bytes.

Each message stands behind the number of its version; later versions only append, so whoever knows
fewer reads what it knows. Protocol: the consumer protocol of KIP-429 and KIP-792.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark_kafkaproto.client.group.classic.assignors import Subscriber
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.members import read_embedded
from pyspark_kafkaproto.cluster.topology import by_topic
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.wire.schema import encode

_SUBSCRIPTION_VERSION = 3
# The later versions of an assignment say the same.
_ASSIGNMENT_VERSION = 0


def subscription_bytes(topics: Collection[str], rack_id: str) -> bytes:
    """What a member that wants `topics` tells the leader; it keeps nothing over a rebalance."""
    message = ConsumerProtocolSubscription(topics=tuple(sorted(topics)), rack_id=rack_id or None)
    return _SUBSCRIPTION_VERSION.to_bytes(2) + encode(message, _SUBSCRIPTION_VERSION)


def read_subscriber(member: JoinGroupResponse.Member, group: str) -> Subscriber:
    """A member of the group with the topics that it wants.

    Raises:
        RemoteProtocolError: it does not speak the consumer protocol.
    """
    where = f"group {group!r}, subscription of member {member.member_id!r}"
    found = read_embedded(ConsumerProtocolSubscription, member.metadata, where)
    return Subscriber(member.member_id, frozenset(found.topics), member.group_instance_id)


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    """What the leader tells a member that is to read `partitions`."""
    part = ConsumerProtocolAssignment.AssignedPartition
    assigned = tuple(
        part(topic=topic, partitions=tuple(item.partition for item in own))
        for topic, own in by_topic(partitions)
    )
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return _ASSIGNMENT_VERSION.to_bytes(2) + encode(message, _ASSIGNMENT_VERSION)
