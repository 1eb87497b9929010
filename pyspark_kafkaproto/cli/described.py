"""Groups as `kafkaproto groups describe` shows them: tables for people, rows for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from pyspark_kafkaproto.cli.output import Row, table_text
from pyspark_kafkaproto.cluster import DescribedGroup, Member, Task, Tasks

_GROUP = {
    "group": "Group",
    "type": "Type",
    "state": "State",
    "assignor": "Assignor",
    "epoch": "Epoch",
    "members": "Members",
}
_MEMBERS = {
    "group": "Group",
    "client_id": "Client",
    "host": "Host",
    "instance_id": "Instance",
    "member_id": "Member",
    "protocol": "Protocol",
    "assignment": "Partitions",
}
_WORKERS = {
    "group": "Group",
    "client_id": "Client",
    "host": "Host",
    "instance_id": "Instance",
    "member_id": "Member",
    "active": "Active tasks",
    "standby": "Standby",
    "warmup": "Warm-up",
}
_SUBTOPOLOGIES = {
    "group": "Group",
    "subtopology": "Subtopology",
    "source_topics": "Sources",
    "repartition_sources": "From others",
    "repartition_sinks": "For others",
    "changelogs": "Changelogs",
}
_PROBLEMS = {"group": "Group", "problem": "Problem"}


def show_groups(groups: Iterable[DescribedGroup]) -> None:
    """Print what they are, who is in them, and what streams groups do: a table for each."""
    groups = list(groups)
    readers = [row for item in groups if item.type != "streams" for row in _member_rows(item)]
    workers = [
        {**row, **_task_row(member.tasks)}
        for item in groups
        if item.type == "streams"
        for member, row in zip(item.members, _member_rows(item), strict=True)
    ]
    tables: tuple[tuple[Sequence[Row], Mapping[str, str]], ...] = (
        (list(map(_group_row, groups)), _GROUP),
        (readers, _MEMBERS),
        (workers, _WORKERS),
        ([row for item in groups for row in _subtopology_rows(item)], _SUBTOPOLOGIES),
        ([row for item in groups for row in _problem_rows(item)], _PROBLEMS),
    )
    texts = [table_text(rows, columns) for rows, columns in tables if rows]
    if not readers and not workers:
        texts.insert(1, "no members\n")
    click.echo("\n".join(texts), nl=False)


def group_rows(groups: Iterable[DescribedGroup]) -> list[Row]:
    """The same with every field, each group with its members and its topology."""
    return [
        _group_row(item) | {"members": _member_rows(item), "topology": _topology_row(item)}
        for item in groups
    ]


def _group_row(item: DescribedGroup) -> dict[str, object]:
    return {
        "group": item.group,
        "type": item.type,
        "state": item.state,
        "protocol_type": item.protocol_type,
        "assignor": item.assignor,
        "epoch": item.epoch,
        "assignment_epoch": item.assignment_epoch,
        "members": len(item.members),
    }


def _member_rows(item: DescribedGroup) -> list[dict[str, object]]:
    return [
        {
            "group": item.group,
            "client_id": member.client_id,
            "host": member.host,
            "instance_id": member.instance_id,
            "member_id": member.member_id,
            "protocol": _protocol(item, member),
            "epoch": member.epoch,
            "assignment": [str(partition) for partition in sorted(member.assignment)],
            "target": [str(partition) for partition in sorted(member.target)],
            "tasks": member.tasks and _task_row(member.tasks),
            "target_tasks": member.target_tasks and _task_row(member.target_tasks),
        }
        for member in item.members
    ]


def _protocol(item: DescribedGroup, member: Member) -> str | None:
    """The one that the member speaks: in a consumer group it may be the classic one."""
    if member.is_classic is None:
        return None
    return "classic" if member.is_classic else item.type


def _task_row(tasks: Tasks | None) -> dict[str, object]:
    tasks = tasks or Tasks()
    return {
        "active": _task_texts(tasks.active),
        "standby": _task_texts(tasks.standby),
        "warmup": _task_texts(tasks.warmup),
    }


def _task_texts(tasks: Iterable[Task]) -> list[str]:
    """As Kafka Streams writes them, `0_1`; the second subtopology comes before the tenth."""
    return list(map(str, sorted(tasks, key=lambda task: (len(task.subtopology), task))))


def _topology_row(item: DescribedGroup) -> dict[str, object] | None:
    if item.topology is None:
        return None
    return {
        "epoch": item.topology.epoch,
        "subtopologies": list(_subtopology_rows(item)),
        "problems": list(item.topology.problems),
    }


def _subtopology_rows(item: DescribedGroup) -> Iterator[dict[str, object]]:
    for part in item.topology.subtopologies if item.topology else ():
        yield {
            "group": item.group,
            "subtopology": part.subtopology_id,
            "source_topics": sorted(part.source_topics),
            "repartition_sources": sorted(part.repartition_sources),
            "repartition_sinks": sorted(part.repartition_sinks),
            "changelogs": sorted(part.changelogs),
        }


def _problem_rows(item: DescribedGroup) -> Iterator[dict[str, object]]:
    for problem in item.topology.problems if item.topology else ():
        yield {"group": item.group, "problem": problem}
