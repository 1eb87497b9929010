"""Groups as fake brokers list and describe them, of every type."""

from __future__ import annotations

from pyspark_kafkaproto.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from pyspark_kafkaproto.messages.consumer_protocol import ConsumerProtocolAssignment
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from pyspark_kafkaproto.messages.share_group_describe import Assignment as ShareAssignment
from pyspark_kafkaproto.messages.share_group_describe import ShareGroupDescribeResponse
from pyspark_kafkaproto.messages.share_group_describe import TopicPartitions as ShareTopicPartitions
from pyspark_kafkaproto.messages.streams_group_describe import Assignment as StreamsAssignment
from pyspark_kafkaproto.messages.streams_group_describe import (
    StreamsGroupDescribeResponse,
    TaskIds,
    TopicInfo,
)
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


def consumer(group, code=0, assignments=(), member_type=-1):
    """A group as ConsumerGroupDescribe tells it: not one of its own, where there is a code."""
    part = ConsumerGroupDescribeResponse.Group
    return part(
        error_code=code,
        group_id=group,
        group_state="Stable",
        group_epoch=7,
        assignment_epoch=6,
        assignor_name="uniform",
        members=tuple(
            part.Member(
                member_id=f"m{at}",
                client_id=f"c{at}",
                client_host="/h",
                assignment=_topics(now),
                target_assignment=_topics(then),
                member_type=member_type,
            )
            for at, (now, then) in enumerate(assignments)
        ),
    )


def _topics(numbers):
    topic = TopicPartitions(topic_name="orders", partitions=tuple(numbers))
    return Assignment(topic_partitions=(topic,) if numbers else ())


def share(group, *assignments, code=0, text=None):
    """A group as ShareGroupDescribe tells it; its members have these partitions of `orders`."""
    part = ShareGroupDescribeResponse.Group
    return part(
        error_code=code,
        error_message=text,
        group_id=group,
        group_state="Stable" if assignments else "Empty",
        group_epoch=4,
        assignment_epoch=3,
        assignor_name="simple",
        members=tuple(
            part.Member(
                member_id=f"m{at}",
                client_id=f"c{at}",
                client_host="/h",
                member_epoch=4,
                subscribed_topic_names=("orders",),
                assignment=ShareAssignment(
                    topic_partitions=(
                        ShareTopicPartitions(topic_name="orders", partitions=numbers),
                    )
                ),
            )
            for at, numbers in enumerate(assignments)
        ),
    )


def subtopology(number, *sources, repartition=(), sinks=(), changelogs=()):
    """A part of a topology; internal topics as (name, partitions)."""
    return StreamsGroupDescribeResponse.Group.Topology.Subtopology(
        subtopology_id=number,
        source_topics=sources,
        repartition_sink_topics=sinks,
        state_changelog_topics=tuple(TopicInfo(name=n, partitions=c) for n, c in changelogs),
        repartition_source_topics=tuple(TopicInfo(name=n, partitions=c) for n, c in repartition),
    )


def streams(group, *parts, members=(), state="Stable", code=0, topology=True):
    """A group as StreamsGroupDescribe tells it; each member's tasks by kind: {"active": {"0": …}}.

    `topology` is False where none is told, None where it is not initialized.
    """
    part = StreamsGroupDescribeResponse.Group
    told = part.Topology(epoch=2, subtopologies=None if topology is None else parts)
    return part(
        error_code=code,
        group_id=group,
        group_state=state,
        group_epoch=5,
        assignment_epoch=5,
        topology=None if topology is False else told,
        members=tuple(
            part.Member(
                member_id=f"m{at}",
                client_id=f"c{at}",
                client_host="/h",
                member_epoch=5,
                process_id="p",
                assignment=_tasks(tasks),
                target_assignment=_tasks(tasks),
            )
            for at, tasks in enumerate(members)
        ),
    )


def _tasks(tasks):
    return StreamsAssignment(
        **{
            f"{kind}_tasks": tuple(
                TaskIds(subtopology_id=number, partitions=numbers)
                for number, numbers in own.items()
            )
            for kind, own in tasks.items()
        }
    )


def describing(brokers, *groups):
    """The nodes know these groups, and say of all others that there are none."""
    known = {item.group_id: item for item in groups}

    def as_classic(call):
        of = DescribeGroupsResponse.Group
        found = ((name, known.get(name)) for name in call.request.groups)
        return DescribeGroupsResponse(
            groups=tuple(
                item if isinstance(item, of) else classic(name, code=69) for name, item in found
            )
        )

    def as_one_of(response, missing):
        def answer(call):
            found = ((name, known.get(name)) for name in call.request.group_ids)
            return response(
                groups=tuple(
                    item if isinstance(item, response.Group) else missing(name, code=69)
                    for name, item in found
                )
            )

        return answer

    brokers.on("ConsumerGroupDescribe", as_one_of(ConsumerGroupDescribeResponse, consumer))
    brokers.on("DescribeGroups", as_classic)
    brokers.on("ShareGroupDescribe", as_one_of(ShareGroupDescribeResponse, share))
    brokers.on("StreamsGroupDescribe", as_one_of(StreamsGroupDescribeResponse, streams))


def listed(*groups, code=0):
    """An answer to ListGroups: name, type and state of each."""
    part = ListGroupsResponse.Group
    return ListGroupsResponse(
        error_code=code,
        groups=tuple(
            part(
                group_id=name,
                group_type=kind,
                group_state=state,
                protocol_type=kind.lower() if kind in {"Share", "Streams"} else "consumer",
            )
            for name, kind, state in groups
        ),
    )
