"""Streams groups (KIP-1071): members with their tasks, the topology, and what is wrong with it.

Brokers tell members alone what keeps a group from working (a status in their heartbeats). It is
found out anew here: what the topology needs is compared with the topics that there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from pyspark_kafkaproto.cluster.groups.described import (
    STREAMS,
    DescribedGroup,
    Member,
    StreamsTopology,
    Subtopology,
    Task,
    Tasks,
)
from pyspark_kafkaproto.cluster.groups.describing import find_described
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology
from pyspark_kafkaproto.messages.streams_group_describe import (
    Assignment,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TaskIds,
    TopicInfo,
)

_NOT_READY = "NotReady"
_NO_TOPOLOGY = "its topology is not known yet: no member has told it"
_NOT_INITIALIZED = (
    "the broker has not initialized its topology: source topics are missing, or have other "
    "numbers of partitions than each other"
)


def find_streams_groups(
    router: Router, groups: Collection[str]
) -> dict[str, DescribedGroup | None]:
    """Those of `groups` that are streams groups; None for the others."""
    found = find_described(router, groups, StreamsGroupDescribeRequest, _streams_group)
    topics = {topic for item in found.values() if item for topic in _topics_of(item)}
    if not topics:
        return found
    there = router.described(topics)
    return {group: item and _completed(item, there) for group, item in found.items()}


def _streams_group(item: StreamsGroupDescribeResponse.Group) -> DescribedGroup:
    """All but what only the topics themselves tell."""
    return DescribedGroup(
        item.group_id,
        STREAMS,
        item.group_state,
        STREAMS,
        item.assignor_name or "",
        item.group_epoch,
        tuple(map(_member, item.members)),
        item.assignment_epoch,
        _topology(item),
    )


def _member(member: StreamsGroupDescribeResponse.Group.Member) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        frozenset(),
        frozenset(),
        member.member_epoch,
        member.is_classic,
        _tasks(member.assignment),
        _tasks(member.target_assignment),
    )


def _tasks(assignment: Assignment) -> Tasks:
    def named(items: tuple[TaskIds, ...]) -> frozenset[Task]:
        return frozenset(Task(item.subtopology_id, n) for item in items for n in item.partitions)

    return Tasks(
        named(assignment.active_tasks),
        named(assignment.standby_tasks),
        named(assignment.warmup_tasks),
    )


def _topology(item: StreamsGroupDescribeResponse.Group) -> StreamsTopology | None:
    found = item.topology
    if found is None:
        problems = (_NO_TOPOLOGY,) if item.group_state == _NOT_READY else ()
        return StreamsTopology(-1, (), problems) if problems else None
    if found.subtopologies is None:
        return StreamsTopology(found.epoch, (), (_NOT_INITIALIZED,))
    subtopologies = tuple(
        Subtopology(
            part.subtopology_id,
            frozenset(part.source_topics),
            frozenset(part.repartition_sink_topics),
            _needed(part.repartition_source_topics),
            _needed(part.state_changelog_topics),
        )
        for part in found.subtopologies
    )
    return StreamsTopology(found.epoch, subtopologies, ())


def _needed(topics: tuple[TopicInfo, ...]) -> Mapping[str, int]:
    return {topic.name: topic.partitions for topic in topics}


# What the topics tell


class _Needed(NamedTuple):
    """A topic that a topology is about; `partitions` is 0 where any number will do."""

    kind: str
    topic: str
    partitions: int = 0


def _topics_of(group: DescribedGroup) -> set[str]:
    parts = group.topology.subtopologies if group.topology else ()
    return {needed.topic for needed in _all_needed(parts)}


def _all_needed(parts: Collection[Subtopology]) -> Iterator[_Needed]:
    for part in parts:
        for topic in sorted(part.source_topics):
            yield _Needed("source topic", topic)
        for topic, partitions in sorted(part.repartition_sources.items()):
            yield _Needed("repartition topic", topic, partitions)
        for topic, partitions in sorted(part.changelogs.items()):
            yield _Needed("changelog topic", topic, partitions)


def _completed(group: DescribedGroup, there: Topology) -> DescribedGroup:
    """`group` with which partitions its members read, and what is wrong."""
    topology = group.topology
    if topology is None:
        return group
    reads = {part.subtopology_id: part.read_topics for part in topology.subtopologies}

    def partitions(tasks: Tasks | None) -> frozenset[TopicPartition]:
        # A subtopology has as many tasks as its largest source has partitions.
        return frozenset(
            TopicPartition(topic, task.partition)
            for task in (tasks.active if tasks else ())
            for topic in reads.get(task.subtopology, ())
            if there.has(topic) and task.partition in there.topics[topic].partitions
        )

    members = tuple(
        replace(
            member,
            assignment=partitions(member.tasks),
            target=partitions(member.target_tasks),
        )
        for member in group.members
    )
    problems = (*topology.problems, *_problems(topology, there, group.state))
    return replace(group, members=members, topology=replace(topology, problems=problems))


def _problems(topology: StreamsTopology, there: Topology, state: str) -> list[str]:
    found = []
    for needed in dict.fromkeys(_all_needed(topology.subtopologies)):
        if not there.has(needed.topic):
            found.append(f"{needed.kind} {needed.topic!r} is not there")
            continue
        count = len(there.topics[needed.topic].partitions)
        if needed.partitions and count and needed.partitions != count:
            text = f"has {_partitions(count)}, and needs {needed.partitions}"
            found.append(f"{needed.kind} {needed.topic!r} {text}")
    if not found and state == _NOT_READY:
        return list(_uneven(topology, there))
    return found


def _uneven(topology: StreamsTopology, there: Topology) -> Iterator[str]:
    """What may be wrong where all topics are there: brokers do not tell which are joined."""
    for part in topology.subtopologies:
        counts = {
            topic: len(there.topics[topic].partitions) for topic in sorted(part.source_topics)
        }
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{topic!r} {count}" for topic, count in counts.items())
            yield (
                f"the source topics of subtopology {part.subtopology_id} have different numbers "
                f"of partitions, {shown}: those that are joined need the same"
            )


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
