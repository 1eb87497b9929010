"""What assignors see of a member, and what they give it (values only)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark_kafkaproto.client.group.membership import NO_GENERATION
from pyspark_kafkaproto.cluster import TopicPartition


class Claim(NamedTuple):
    """The partitions that a member may be reading, and since which generation."""

    partitions: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION


NOTHING = Claim()


class Subscriber(NamedTuple):
    """A member as assignors see it."""

    member_id: str
    topics: Collection[str]
    instance_id: str | None = None
    claim: Claim = NOTHING


Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def in_order(members: Iterable[Subscriber]) -> list[Subscriber]:
    """Kafka's order: those with a group.instance.id first, by it, then the others by member id."""
    return sorted(members, key=_order)


def numbered(topic: str, start: int, stop: int) -> list[TopicPartition]:
    """Neighbouring partitions of one topic."""
    return [TopicPartition(topic, number) for number in range(start, stop)]


def _order(member: Subscriber) -> tuple[bool, str]:
    return (member.instance_id is None, member.instance_id or member.member_id)
