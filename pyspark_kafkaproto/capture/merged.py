"""Several captures as one: each process writes a file of its own, and one look shall do for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import attrgetter

from pyspark_kafkaproto.capture.packets import Packet, PacketReader


class MergedReader:
    """The packets of all captures by their time; those of one capture stay in their order."""

    def __init__(self, readers: Mapping[str, PacketReader]) -> None:
        self._readers = readers

    def __iter__(self) -> Iterator[Packet]:
        return merge(*self._readers.values(), key=attrgetter("time_ns"))

    @property
    def done_bytes(self) -> int:
        """Of all files."""
        return sum(reader.done_bytes for reader in self._readers.values())

    @property
    def damage(self) -> str:
        """Of each file that has some, with its name."""
        damaged = {name: reader.damage for name, reader in self._readers.items()}
        return ", ".join(f"{name}: {damage}" for name, damage in damaged.items() if damage)
