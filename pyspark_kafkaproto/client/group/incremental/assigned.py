"""What a coordinator wants read, by topic ids, and what those are called. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster import TopicPartition

# Of topics that are not read; one that comes back is not looked up again.
_MOST_NAMES: Final = 1000


class IdPartition(NamedTuple):
    """A partition as heartbeats name it."""

    topic_id: bytes
    partition: int


class Assigned:
    """A member's assignment; of topics without a name (yet) nothing can be read.

    What follows from it is worked out as it changes: it is looked at with each commit.

    Attributes:
        partitions: what is to be read, as far as it has a name.
        unnamed: the topics whose names are not known.
    """

    def __init__(self) -> None:
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.unnamed: set[bytes] = set()
        self._target: frozenset[IdPartition] = frozenset()
        self._names: dict[bytes, str] = {}
        self._ids: dict[TopicPartition, bytes] = {}  # by which each was assigned last
        self._owned: frozenset[TopicPartition] | None = None  # what `_held` is of; None: of nothing
        self._held: frozenset[IdPartition] = frozenset()

    def note_target(self, target: Iterable[IdPartition]) -> None:
        """The coordinator wants this read, and nothing else."""
        self._target = frozenset(target)
        self._work_out()

    def note_names(self, names: Mapping[bytes, str]) -> None:
        """These are the names of topics; an id never comes to mean another one."""
        self._names |= names
        self._work_out()
        assigned = set(self._ids.values())
        others = [item for item in self._names if item not in assigned]
        for topic_id in others[:-_MOST_NAMES]:
            del self._names[topic_id]

    def held_with(self, owned: frozenset[TopicPartition]) -> frozenset[IdPartition]:
        """What may be read at any moment: what is to be, and of what was before what still is.

        One whose topic was deleted and made again is named as it is assigned now: by the id of
        before the coordinator would wait for it to be given up.

        Args:
            owned: what is read, which was assigned.
        """
        if owned is not self._owned:
            named = {IdPartition(self._ids[item], item.partition) for item in owned}
            self._owned, self._held = owned, self._target | named
            # Whatever comes to be read now is assigned: topics may come and go for years.
            there = self.partitions | owned
            self._ids = {item: known for item, known in self._ids.items() if item in there}
        return self._held

    def _work_out(self) -> None:
        ids = {
            TopicPartition(self._names[topic_id], number): topic_id
            for topic_id, number in self._target
            if topic_id in self._names
        }
        self.partitions = frozenset(ids)
        self.unnamed = {item.topic_id for item in self._target} - self._names.keys()
        self._ids |= ids
        self._owned = None
