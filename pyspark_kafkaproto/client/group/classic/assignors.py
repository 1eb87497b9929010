"""Who reads which partitions: the assignors, by the names that members agree on.

The leader of a group runs one of them over the subscriptions of all members, whatever client they
are. The range and round-robin ones are equal to the Java client's, the others are in `sticky`.
Racks play no part here (KIP-881 lets the Java leader prefer near replicas). Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Final

from pyspark_kafkaproto.client.group.classic.sticky import assign_cooperatively, assign_sticky
from pyspark_kafkaproto.client.group.classic.subscriber import (
    Assignment,
    Assignor,
    Subscriber,
    in_order,
    numbered,
)


def assign_ranges(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """Of each topic a run of neighbouring partitions to each member; the first ones get one more.

    Args:
        members: with the topics that each wants.
        partitions: how many each topic has; topics that are not there are left out.

    Returns:
        Partitions by member id, for every member.
    """
    assignment: Assignment = {member.member_id: [] for member in members}
    ordered = in_order(members)
    for topic, count in sorted(partitions.items()):
        readers = [member.member_id for member in ordered if topic in member.topics]
        taken = 0
        for number, reader in enumerate(readers):
            share = count // len(readers) + (number < count % len(readers))
            assignment[reader] += numbered(topic, taken, taken + share)
            taken += share
    return assignment


def assign_in_turn(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """All partitions of all topics in their order, one to each member that wants it, in turn.

    Arguments and result are those of `assign_ranges`.
    """
    assignment: Assignment = {member.member_id: [] for member in members}
    wanted = {topic for member in members for topic in member.topics}
    turns = cycle(in_order(members))
    for topic, count in sorted(partitions.items()):
        for item in numbered(topic, 0, count) if topic in wanted else ():
            reader = next(member for member in turns if topic in member.topics)
            assignment[reader.member_id].append(item)
    return assignment


ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "range": assign_ranges,
    "roundrobin": assign_in_turn,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperatively,
}
