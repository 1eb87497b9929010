"""Groups as fake brokers list and describe them, in both protocols."""

from __future__ import annotations

from pyspark_kafkaproto.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from pyspark_kafkaproto.messages.consumer_protocol import ConsumerProtocolAssignment
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from pyspark_kafkaproto.wire.schema import encode


def assigned(*numbers, version=1):
    """A member's assignment as bytes."""
    part = ConsumerProtocolAssignment.AssignedPartition(topic="orders", partitions=numbers)
    body = encode(ConsumerProtocolAssignment(assigned_partitions=(part,)), min(version, 3))
    return version.to_bytes(2, signed=True) + body


def classic(group, *assignments, state="Stable", protocol_type="consumer", code=0):
    """A group as DescribeGroups tells it."""
    member = DescribeGroupsResponse.Group.Member
    return DescribeGroupsResponse.Group(
        error_code=code,
        group_id=group,
        group_state=state,
        protocol_type=protocol_type,
        protocol_data="range",
        members=tuple(
            member(member_id=f"m{at}", client_id=f"c{at}", client_host="/h", member_assignment=data)
            for at, data in enumerate(assignments)
        ),
    )


def consumer(group, code=0, assignments=()):
    """A group as ConsumerGroupDescribe tells it: not one of its own, where there is a code."""
    part = ConsumerGroupDescribeResponse.Group
    return part(
        error_code=code,
        group_id=group,
        group_state="Stable",
        group_epoch=7,
        assignor_name="uniform",
        members=tuple(
            part.Member(
                member_id=f"m{at}",
                client_id=f"c{at}",
                client_host="/h",
                assignment=_topics(now),
                target_assignment=_topics(then),
            )
            for at, (now, then) in enumerate(assignments)
        ),
    )


def _topics(numbers):
    topic = TopicPartitions(topic_name="orders", partitions=tuple(numbers))
    return Assignment(topic_partitions=(topic,) if numbers else ())


def describing(brokers, *groups):
    """The nodes know these groups, and say of all others that there are none."""
    known = {item.group_id: item for item in groups}

    def as_consumer(call):
        found = (known.get(name) for name in call.request.group_ids)
        names = call.request.group_ids
        return ConsumerGroupDescribeResponse(
            groups=tuple(
                item
                if isinstance(item, ConsumerGroupDescribeResponse.Group)
                else consumer(name, code=69)
                for name, item in zip(names, found, strict=True)
            )
        )

    def as_classic(call):
        return DescribeGroupsResponse(
            groups=tuple(known.get(name) or classic(name, code=69) for name in call.request.groups)
        )

    brokers.on("ConsumerGroupDescribe", as_consumer)
    brokers.on("DescribeGroups", as_classic)


def listed(*groups, code=0):
    """An answer to ListGroups: name, type and state of each."""
    part = ListGroupsResponse.Group
    return ListGroupsResponse(
        error_code=code,
        groups=tuple(
            part(group_id=name, group_type=kind, group_state=state, protocol_type="consumer")
            for name, kind, state in groups
        ),
    )
