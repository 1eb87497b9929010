"""What members of a group tell each other through the coordinator, as bytes.

Each message stands behind the number of its version; later versions only append, so whoever knows
fewer reads what it knows. Protocol: the consumer protocol of KIP-429 and KIP-792; the sticky
assignor's own data, which Java and librdkafka write alike (KIP-54, KIP-341).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from pyspark_kafkaproto.client.group.classic.subscriber import NOTHING, Claim, Subscriber
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.members import read_embedded
from pyspark_kafkaproto.cluster.topology import numbers_by_topic
from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.wire.declaration import Message, Struct, Versions, array, field
from pyspark_kafkaproto.wire.schema import decode, encode

_log = logging.getLogger(__name__)

_SUBSCRIPTION_VERSION = 3
# The later versions of an assignment say the same.
_ASSIGNMENT_VERSION = 0
_STICKY, _COOPERATIVE = "sticky", "cooperative-sticky"


class StickyUserData(Message):
    """What a member had before, as the sticky assignor remembers it; without a version."""

    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = None

    class Topic(Struct):
        """Partitions of one topic."""

        topic: str = field("string", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    previous_assignment: tuple[Topic, ...] = array(Topic, "0+")
    generation: int = field("int32", "1+", default=NOTHING.generation, ignorable=True)


class CooperativeUserData(Message):
    """The generation of what a member owns, for leaders who read no more of a subscription."""

    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = None

    generation: int = field("int32", "0+")


def subscription_bytes(
    topics: Collection[str], rack_id: str = "", claim: Claim = NOTHING, user_data: bytes = b""
) -> bytes:
    """What a member that wants `topics` tells the leader, with what it reads meanwhile."""
    part = ConsumerProtocolSubscription.OwnedPartition
    message = ConsumerProtocolSubscription(
        topics=tuple(sorted(topics)),
        user_data=user_data or None,
        owned_partitions=tuple(
            part(topic=topic, partitions=numbers)
            for topic, numbers in numbers_by_topic(claim.partitions)
        ),
        generation_id=claim.generation,
        rack_id=rack_id or None,
    )
    return _SUBSCRIPTION_VERSION.to_bytes(2) + encode(message, _SUBSCRIPTION_VERSION)


def user_data_for(assignor: str, before: Claim) -> bytes:
    """What an assignor wants to know beside that: what the member had in the last generation."""
    if assignor == _COOPERATIVE:
        return encode(CooperativeUserData(generation=before.generation), 0)
    if assignor == _STICKY:
        had = tuple(
            StickyUserData.Topic(topic=topic, partitions=numbers)
            for topic, numbers in numbers_by_topic(before.partitions)
        )
        return encode(StickyUserData(previous_assignment=had, generation=before.generation), 1)
    return b""


def read_subscriber(member: JoinGroupResponse.Member, group: str, assignor: str) -> Subscriber:
    """A member of the group with the topics that it wants, and what it has from before.

    Raises:
        RemoteProtocolError: it does not speak the consumer protocol.
    """
    where = f"group {group!r}, subscription of member {member.member_id!r}"
    found = read_embedded(ConsumerProtocolSubscription, member.metadata, where)
    user_data = found.user_data or b""
    if assignor == _STICKY:
        claim = _remembered(user_data, where)
    else:
        owned = found.owned_partitions
        generation = found.generation_id
        if generation == NOTHING.generation and assignor == _COOPERATIVE:
            generation = _generation_in(user_data)
        claim = Claim(_partitions(owned), generation)
    topics = frozenset(found.topics)
    return Subscriber(member.member_id, topics, member.group_instance_id, claim)


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    """What the leader tells a member that is to read `partitions`."""
    part = ConsumerProtocolAssignment.AssignedPartition
    assigned = tuple(
        part(topic=topic, partitions=numbers) for topic, numbers in numbers_by_topic(partitions)
    )
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return _ASSIGNMENT_VERSION.to_bytes(2) + encode(message, _ASSIGNMENT_VERSION)


def _partitions(
    topics: Iterable[ConsumerProtocolSubscription.OwnedPartition | StickyUserData.Topic],
) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each.topic, at) for each in topics for at in each.partitions)


def _remembered(user_data: bytes, where: str) -> Claim:
    """What a member of the sticky assignor had; as in Java nothing, where it cannot be read."""
    if not user_data:
        return NOTHING
    for version in (1, 0):
        try:
            found = decode(StickyUserData, user_data, version)
        except RemoteProtocolError as error:
            _log.debug("%s: %s", where, error)
        else:
            return Claim(_partitions(found.previous_assignment), found.generation)
    return NOTHING


def _generation_in(user_data: bytes) -> int:
    try:
        return decode(CooperativeUserData, user_data, 0).generation
    except RemoteProtocolError:  # librdkafka's is that of the sticky assignor
        return _remembered(user_data, "user data").generation
