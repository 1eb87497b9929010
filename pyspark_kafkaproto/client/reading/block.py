"""A block: record batches of one partition out of an answer, which may still be coming.

Who reads it waits for the rest where what is there ends. How more of it comes is `fetch`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.errors import LocalProtocolError

if TYPE_CHECKING:
    from pyspark_kafkaproto.net._inflow import Inflow


class Block:
    """Record batches of one partition, a view into memory that the next block overwrites.

    Rows are those of [start, stop); the first batch may begin before `start`.

    Attributes:
        progress: of the range that it belongs to.
        start: the first offset that is wanted of it.
        stop: the first that is not.
        aborted: (producer id, first offset) of transactions that were aborted.
        end: where the headers of its batches say that they end, and where the next block begins;
            `start` until all of it is there.
        source: what has more of it for a decoder without a step in Python, if anything has.
        has_broken_off: whether more was to come and did not; it is asked for again.
    """

    __slots__ = (
        "_arrived",
        "_memory",
        "_receive",
        "aborted",
        "end",
        "has_broken_off",
        "progress",
        "source",
        "start",
        "stop",
    )

    def __init__(
        self,
        progress: RangeProgress,
        memory: memoryview,
        aborted: Sequence[tuple[int, int]],
        receive: Callable[[Block], None] | None = None,
    ) -> None:
        """`receive` waits for more and notes it in the block; None: all of it is there."""
        self.progress = progress
        self.start = self.end = progress.position
        self.stop = progress.stop
        self.aborted = aborted
        self._memory: memoryview | None = memory
        self._arrived = 0 if receive else len(memory)
        self.has_broken_off = False
        self._receive = receive
        self.source: Inflow | None = None

    @property
    def memory(self) -> memoryview:
        """Where its batches are and will be.

        Raises:
            LocalProtocolError: by now it may hold another answer.
        """
        if self._memory is None:
            raise LocalProtocolError(
                "a block is read after the one that follows was asked for, or after its reading "
                "was closed"
            )
        return self._memory

    @property
    def arrived(self) -> int:
        """How many bytes of `memory` are there."""
        if self.source is None:
            return self._arrived
        return min(self.source.reached, len(self.memory))

    def note_arrived(self, count: int) -> None:
        """So many bytes of `memory` are there, or more: those behind it are not its own."""
        self._arrived = min(count, len(self.memory))

    @property
    def records(self) -> memoryview:
        """The bytes that are there."""
        return self.memory[: self.arrived]

    @property
    def is_whole(self) -> bool:
        """Whether no more of it will come."""
        return self._receive is None

    def more(self) -> int:
        """Wait for more of it; how many bytes are there then."""
        if self._receive is not None:
            self._receive(self)
        return self.arrived

    def finish(self) -> None:
        """Wait for all of it."""
        while not self.is_whole:
            self.more()

    def ends(self, end: int) -> None:
        """Nothing follows what is there, which ends before the offset `end`."""
        self._memory = self.records
        self._arrived = len(self._memory)
        self._receive = self.source = None
        self.end = end

    def keep(self) -> None:
        """Have what is there in memory of its own, which no answer overwrites."""
        self._memory = memoryview(bytes(self.records))

    def leave(self) -> None:
        """Its memory is for other answers from here on."""
        self._memory = None

    def leave_rest(self, offset: int) -> None:
        """Of a block that has broken off: what is at `offset` and behind is asked for again."""
        self.progress.position = self.end = offset
