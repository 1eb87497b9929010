"""A response that is still coming, and how much of it is there. Moves no bytes itself."""

from __future__ import annotations

from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES
from pyspark_kafkaproto.wire.front import Front


class Arrival:
    """A response on its way: its size comes first, then as many bytes.

    Attributes:
        payload: memory for all of the frame, without its size; empty until that is known.
        arrived: how many of its bytes are there.
        front: what stands before its first records, if that has come and the records are still
            coming; else None.
    """

    __slots__ = ("_size_arrived", "arrived", "front", "payload", "size")

    def __init__(self) -> None:
        self.size = memoryview(bytearray(SIZE_PREFIX_BYTES))  # as it is sent
        self._size_arrived = 0
        self.payload = self.size[:0]
        self.arrived = 0
        self.front: Front | None = None

    @property
    def is_sized(self) -> bool:
        """Whether its size is there."""
        return self._size_arrived == SIZE_PREFIX_BYTES

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there."""
        return self.is_sized and self.arrived == len(self.payload)

    @property
    def rest(self) -> memoryview:
        """Where the next bytes belong: in the size, then in the frame."""
        if not self.is_sized:
            return self.size[self._size_arrived :]
        return self.payload[self.arrived :]

    def note(self, count: int) -> None:
        """`rest` has `count` bytes now."""
        if not self.is_sized:
            self._size_arrived += count
        else:
            self.arrived += count
