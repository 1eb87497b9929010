"""A response that is still coming, and how much of it is there.

Moves no bytes itself: `transport` does, or an `Inflow`, which counts them then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES
from pyspark_kafkaproto.wire.front import Front

if TYPE_CHECKING:
    from pyspark_kafkaproto.net._inflow import Inflow


class Arrival:
    """A response on its way: its size comes first, then as many bytes.

    Attributes:
        payload: memory for all of the frame, without its size; empty until that is known.
        front: what stands before its first records, if that has come and the records are still
            coming; else None.
        inflow: what receives the rest natively, if anything does.
        is_shown: whether who observes the connection was told of it.
    """

    __slots__ = (
        "_arrived",
        "_size_arrived",
        "_waited_s",
        "front",
        "inflow",
        "is_shown",
        "payload",
        "size",
    )

    def __init__(self) -> None:
        self.size = memoryview(bytearray(SIZE_PREFIX_BYTES))  # as it is sent
        self._size_arrived = 0
        self.payload = self.size[:0]
        self._arrived = 0
        self.front: Front | None = None
        self.inflow: Inflow | None = None
        self.is_shown = False
        self._waited_s = 0.0

    @property
    def arrived(self) -> int:
        """How many bytes of `payload` are there."""
        return self._arrived if self.inflow is None else self.inflow.arrived

    @property
    def waited_s(self) -> float:
        """How long it was waited for behind its front, so far."""
        return self._waited_s if self.inflow is None else self.inflow.waited_s

    def note_waited(self, seconds: float) -> None:
        """It was waited for so long."""
        if self.inflow is None:
            self._waited_s += seconds
        else:
            self.inflow.note_waited(seconds)

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
        elif self.inflow is not None:
            self.inflow.note(count)
        else:
            self._arrived += count
