"""What a coordinator wants read, by topic ids, and what those are called. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.cluster import TopicPartition


class IdPartition(NamedTuple):
    """A partition as heartbeats name it."""

    topic_id: bytes
    partition: int


class Assigned:
    """A member's assignment; of topics without a name (yet) nothing can be read."""

    def __init__(self) -> None:
        self._target: frozenset[IdPartition] = frozenset()
        self._names: dict[bytes, str] = {}
        self._ids: dict[TopicPartition, bytes] = {}  # by which each was assigned last

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is to be read, as far as it has a name."""
        return frozenset(self._named())

    @property
    def unnamed(self) -> set[bytes]:
        """The topics whose names are not known."""
        return {item.topic_id for item in self._target} - self._names.keys()

    def note_target(self, target: Iterable[IdPartition]) -> None:
        """The coordinator wants this read, and nothing else."""
        self._target = frozenset(target)
        self._ids |= self._named()

    def note_names(self, names: Mapping[bytes, str]) -> None:
        """These are the names of topics; an id never comes to mean another one."""
        self._names |= names
        self._ids |= self._named()

    def held_with(self, owned: Collection[TopicPartition]) -> frozenset[IdPartition]:
        """What may be read at any moment: what is to be, and of what was before what still is.

        One whose topic was deleted and made again is named as it is assigned now: by the id of
        before the coordinator would wait for it to be given up.

        Args:
            owned: what is read, which was assigned.
        """
        return self._target | {IdPartition(self._ids[item], item.partition) for item in owned}

    def _named(self) -> dict[TopicPartition, bytes]:
        return {
            TopicPartition(self._names[topic_id], number): topic_id
            for topic_id, number in self._target
            if topic_id in self._names
        }
