"""Threads that decode what comes next of a block while the reader decodes what comes first.

Worth it where most of decoding is a codec's library, which lets go of the interpreter, and is
called with much at a time: in zstd, and in large batches of any codec. In small ones handing the
interpreter over takes as long as they do.

Law: what a block gives does not change, nor what is said of it. A part that meets an error is
decoded again by the reader, who tells of it in its turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark_kafkaproto.client.processors import processors
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import (
    DEFAULT_CHUNK_BYTES,
    IMPLEMENTATION,
    Decoded,
    read_header,
    skim,
)
from pyspark_kafkaproto.records.compression import ZSTD

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Who decodes a part: its bytes, the position of its first batch, and the offset it begins at.
Decoder = Callable[[memoryview, int, int], Decoded]

_MOST_THREADS: Final = 3
_LARGE_BATCH_BYTES: Final = 64 << 10
_LEAST_PART_BYTES: Final = 512 << 10  # decompressed
_OF_A_CHUNK: Final = 0.9  # that a part is to have: what is over would be a chunk of its own


class _Part(NamedTuple):
    """What a thread decodes, and where that begins."""

    pos: int
    start: int
    work: Future[Decoded]


class Beside:
    """The parts of one block that threads decode, one after the other behind the reader's own.

    Args:
        threads: how many may at the same time; with none the reader decodes all itself.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._parts: deque[_Part] = deque()
        self._ratio = 0.0  # of a block's bytes to their content, by what was decoded last

    def note(self, size: int, decoded: Decoded) -> None:
        """So many bytes of a block gave `decoded`."""
        if decoded.decompressed_bytes:
            self._ratio = size / decoded.decompressed_bytes

    def share(self, there: memoryview, pos: int, start: int, decode: Decoder) -> int:
        """Have threads decode what lies behind the reader's own part, if that is worth it.

        Args:
            there: what has come of the block.
            pos: where the reader is in it.
            start: which offset it begins at.
            decode: called by the threads.

        Returns:
            Where the reader's own part ends: at the first part that a thread has, or with `there`.
        """
        if self._threads and self._ratio and not self._parts:
            most = int(DEFAULT_CHUNK_BYTES * self._ratio * _OF_A_CHUNK)
            size = min(most, (len(there) - pos) // (self._threads + 1))
            try:
                if size >= _LEAST_PART_BYTES * self._ratio and _is_worth_it(there, pos):
                    self._begin(there, pos, start, size, decode)
            except CorruptRecords:
                pass  # the reader comes to it, and tells
            except RuntimeError:  # there is no thread to be had, as while the interpreter ends
                self._threads = 0
                self.close()
        return self._parts[0].pos if self._parts else len(there)

    def _begin(self, there: memoryview, pos: int, start: int, size: int, decode: Decoder) -> None:
        """A part for each thread, behind one for the reader, of `size` bytes or a little less."""
        ends = []
        for _ in range(self._threads + 1):
            seen = skim(there[: pos + size], pos)
            if seen.next_offset is None:
                break  # a batch is larger
            pos, start = seen.pos, max(start, seen.next_offset)
            ends.append((pos, start))
        for (begin, offset), (end, _) in pairwise(ends):
            self._parts.append(
                _Part(begin, offset, self._submit(decode, there[:end], begin, offset))
            )

    def _submit(self, decode: Decoder, data: memoryview, pos: int, start: int) -> Future[Decoded]:
        if self._pool is None:
            # Executors pay every import at every start, and decode in their tasks' threads.
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

            self._pool = ThreadPoolExecutor(self._threads, "kafkaproto-decode")
        return self._pool.submit(decode, data, pos, start)

    def take(self, pos: int, start: int) -> Decoded | None:
        """What a thread has decoded there, waited for; None: it is the reader's to decode."""
        decoded = None
        while self._parts and self._parts[0].pos <= pos and decoded is None:
            part = self._parts[0]
            try:
                found = part.work.result()
            except (CorruptRecords, MemoryError):
                found = None
            self._parts.popleft()  # whoever interrupts the waiting still has to `drop` it
            # Of a message of magic 0 or 1 the reader may know better than headers where it ends.
            if (part.pos, part.start) == (pos, start):
                decoded = found
        return decoded

    def drop(self) -> None:
        """Forget what is not taken; no thread is in the block's bytes any more."""
        while self._parts:
            part = self._parts.popleft()
            if not part.work.cancel():
                part.work.exception()

    def close(self) -> None:
        """As `drop`; the threads end."""
        self.drop()
        if self._pool is not None:
            # What no thread was had for may stand in line all the same.
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def spare_threads(uses_threads: bool | None) -> int:
    """How many are worth having by `ReadSettings.uses_threads`: one for each processor but one."""
    if uses_threads is False or IMPLEMENTATION == "pure":
        return 0
    return max(1 if uses_threads else 0, min(_MOST_THREADS, processors() - 1))


def _is_worth_it(there: memoryview, pos: int) -> bool:
    batch = read_header(there, pos, len(there))
    return batch is not None and (
        batch.codec == ZSTD or batch.stop - batch.pos >= _LARGE_BATCH_BYTES
    )
