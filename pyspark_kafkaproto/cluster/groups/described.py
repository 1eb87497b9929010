"""Groups as brokers list and describe them, of every type: what each of them is. Values only.

A group has one of four types: classic, consumer (KIP-848), share (KIP-932) and streams (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster.topology import TopicPartition

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
GROUP_TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)
GROUP_STATES: Final = (
    *("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Dead"),
    *("Assigning", "Reconciling", "NotReady"),
)

CONSUMER_PROTOCOL: Final = "consumer"
# Where members are in the way that are stopped already.
STAYS: Final = "one that was killed, or has a group.instance.id, stays in it until its session ends"


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group by name.

    Attributes:
        group: its name.
        type: classic, consumer, share or streams, "" where a broker is old.
        state: of `GROUP_STATES`; "" where a broker is older still.
        protocol_type: what its members are to each other, which tells classic groups apart:
            `consumer`, `connect`, …; "" where none ever came.
    """

    group: str
    type: str
    state: str
    protocol_type: str

    @property
    def reads_topics(self) -> bool:
        """Whether it is one whose members and offsets are about topics' partitions."""
        return self.protocol_type in ("", CONSUMER_PROTOCOL, SHARE, STREAMS)


class Task(NamedTuple):
    """A part of a streams application's work: a subtopology, on one partition of its sources."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a member of a streams group does, keeps copies of, and is about to take over."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a streams application's topology, whose tasks read one partition of each source.

    Attributes:
        subtopology_id: its number, as text.
        source_topics: what it reads.
        repartition_sinks: internal topics that it writes, for another one to read.
        repartition_sources: internal topics that it reads, and how many partitions each needs.
        changelogs: internal topics that its stores are kept in, with their partitions likewise.
    """

    subtopology_id: str
    source_topics: frozenset[str]
    repartition_sinks: frozenset[str]
    repartition_sources: Mapping[str, int]
    changelogs: Mapping[str, int]

    @property
    def read_topics(self) -> frozenset[str]:
        """All that it reads, internal topics among it."""
        return self.source_topics | self.repartition_sources.keys()


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """What a streams group does; `problems` says what keeps it from that, in words."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """Who reads.

    Attributes:
        member_id: as the group knows it.
        instance_id: its group.instance.id, of a static member.
        client_id: as the member calls itself.
        host: where it connected from.
        assignment: its partitions; in a streams group those that its active tasks read. In a
            share group others may have the same.
        target: those that it is to have.
        epoch: the group's, up to which the member has come; None in a classic group.
        is_classic: whether it speaks the classic protocol, which members of a consumer group may,
            too (KIP-848); None where the broker does not tell.
        tasks: of a member of a streams group.
        target_tasks: those that it is to have.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    target: frozenset[TopicPartition]
    epoch: int | None = None
    is_classic: bool | None = None
    tasks: Tasks | None = None
    target_tasks: Tasks | None = None


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group and its members.

    Attributes:
        group: its name.
        type: classic, consumer, share or streams.
        state: of `GROUP_STATES`.
        protocol_type: as in `ListedGroup`.
        assignor: how partitions are shared out; "" where it is not told.
        epoch: grows with each change of the group; None in a classic one.
        members: in the broker's order.
        assignment_epoch: the epoch that partitions were last shared out for.
        topology: of a streams group that has told its own.
    """

    group: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    members: tuple[Member, ...]
    assignment_epoch: int | None = None
    topology: StreamsTopology | None = None

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        """Who reads each partition; nobody alone in a share group."""
        if self.type == SHARE:
            return {}
        return {item: member for member in self.members for item in member.assignment}
