"""Who reads which partitions: the range and round-robin assignors, equal to the Java client's.

The leader of a group runs one of them over the subscriptions of all members, whatever client they
are. Members are taken in Kafka's order: those with a group.instance.id first, by it, then the
others by member id. Racks play no part here (KIP-881 lets the Java leader prefer near replicas).
Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import cycle
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster import TopicPartition


class Subscriber(NamedTuple):
    """A member as assignors see it."""

    member_id: str
    topics: Collection[str]
    instance_id: str | None = None


Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def assign_ranges(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """Of each topic a run of neighbouring partitions to each member; the first ones get one more.

    Args:
        members: with the topics that each wants.
        partitions: how many each topic has; topics that are not there are left out.

    Returns:
        Partitions by member id, for every member.
    """
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = sorted(members, key=_order)
    for topic, count in sorted(partitions.items()):
        readers = [member.member_id for member in ordered if topic in member.topics]
        taken = 0
        for number, reader in enumerate(readers):
            share = count // len(readers) + (number < count % len(readers))
            assignment[reader] += _numbered(topic, taken, taken + share)
            taken += share
    return assignment


def assign_in_turn(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """All partitions of all topics in their order, one to each member that wants it, in turn.

    Arguments and result are those of `assign_ranges`.
    """
    assignment: Assignment = {member.member_id: [] for member in members}
    wanted = {topic for member in members for topic in member.topics}
    turns = cycle(sorted(members, key=_order))
    for topic, count in sorted(partitions.items()):
        for item in _numbered(topic, 0, count) if topic in wanted else ():
            reader = next(member for member in turns if topic in member.topics)
            assignment[reader.member_id].append(item)
    return assignment


ASSIGNORS: Final[Mapping[str, Assignor]] = {"range": assign_ranges, "roundrobin": assign_in_turn}


def _order(member: Subscriber) -> tuple[bool, str]:
    return (member.instance_id is None, member.instance_id or member.member_id)


def _numbered(topic: str, start: int, stop: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(start, stop)]
