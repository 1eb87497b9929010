"""What members tell their leader, as bytes."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group.classic.subscriber import NOTHING, Claim
from pyspark_kafkaproto.client.group.classic.subscription import (
    StickyUserData,
    assignment_bytes,
    read_subscriber,
    subscription_bytes,
    user_data_for,
)
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.members import read_assignment, read_embedded
from pyspark_kafkaproto.messages.consumer_protocol import ConsumerProtocolSubscription
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.wire.schema import encode

HAD = Claim(frozenset({TopicPartition("a", 1), TopicPartition("b", 0)}), 7)


def read(metadata, assignor="range"):
    """What a leader reads of a member."""
    member = JoinGroupResponse.Member(member_id="m1", group_instance_id="i", metadata=metadata)
    return read_subscriber(member, "g", assignor)


def claimed(metadata, assignor):
    return read(metadata, assignor).claim


def said(metadata):
    return read_embedded(ConsumerProtocolSubscription, metadata, "a test")


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_leader_reads_what_a_member_had_and_since_when(assignor):
    metadata = subscription_bytes({"a", "b"}, "", HAD, user_data_for(assignor, HAD))
    assert claimed(metadata, assignor) == HAD


def test_what_the_sticky_assignor_remembers_is_said_beside_what_is_owned():
    """Of eager members, who own nothing while they join, it is all that there is."""
    metadata = subscription_bytes({"a", "b"}, "", user_data=user_data_for("sticky", HAD))
    assert claimed(metadata, "sticky") == HAD


def test_a_generation_in_the_subscription_needs_no_user_data():
    """Java's own leader reads it there first: `generationId` of version 2 and later."""
    metadata = subscription_bytes({"a", "b"}, "", HAD)
    assert said(metadata).generation_id == 7
    assert said(metadata).user_data is None
    assert claimed(metadata, "cooperative-sticky") == HAD


def test_a_member_wants_topics_and_is_somewhere_or_nowhere():
    subscriber = read(subscription_bytes({"b", "a"}))
    assert subscriber == ("m1", {"a", "b"}, "i", NOTHING)
    racks = [said(subscription_bytes({"a"}, rack_id)).rack_id for rack_id in ("r-1", "")]
    assert racks == ["r-1", None]


def test_before_version_2_the_generation_is_in_the_user_data():
    """As Java's members of Kafka 2.4 to 3.1 have it."""
    part = ConsumerProtocolSubscription.OwnedPartition
    owned = (part(topic="a", partitions=(1,)), part(topic="b", partitions=(0,)))
    for user_data in (user_data_for("cooperative-sticky", HAD), user_data_for("sticky", HAD)):
        message = ConsumerProtocolSubscription(
            topics=("a", "b"), user_data=user_data, owned_partitions=owned
        )
        assert claimed(b"\0\1" + encode(message, 1), "cooperative-sticky") == HAD
    assert user_data_for("range", HAD) == b""


def test_of_what_the_sticky_assignor_cannot_read_nothing_is_remembered():
    for user_data in (b"", b"\0"):
        assert claimed(subscription_bytes({"a"}, user_data=user_data), "sticky") == NOTHING
    had = (StickyUserData.Topic(topic="a", partitions=(1,)),)
    first_version = encode(StickyUserData(previous_assignment=had), 0)
    claim = claimed(subscription_bytes({"a"}, user_data=first_version), "sticky")
    assert claim == Claim(frozenset({TopicPartition("a", 1)}))


def test_a_member_reads_what_its_leader_gives_it():
    assert read_assignment(assignment_bytes(HAD.partitions), "a test") == HAD.partitions
