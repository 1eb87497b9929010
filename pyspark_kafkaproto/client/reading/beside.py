"""Parts of a block that threads decode, side by side with the reader.

What is next is shared out in parts of a chunk each. The reader takes them in their order; while a
thread has the one that it wants it decodes another itself.

Worth it where most of decoding is a codec's library, which lets go of the interpreter, and is
called with enough at a time: handing the interpreter over takes as long as small batches do.

Law: what a block gives does not change, nor what is said of it. A part that meets an error is
decoded again by the reader, who tells of it in its turn.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Final

from pyspark_kafkaproto.client.processors import spare_threads
from pyspark_kafkaproto.client.threads import Threads, Work
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import (
    DEFAULT_CHUNK_BYTES,
    IMPLEMENTATION,
    Decoded,
    read_header,
    skim,
)
from pyspark_kafkaproto.records.compression import GZIP, LZ4, SNAPPY, ZSTD

# Who decodes a part: its bytes, the position of its first batch, and the offset it begins at.
Decoder = Callable[[memoryview, int, int], Decoded]

_MOST_THREADS: Final = 3
# Of a batch, decompressed (docs/benchmarks.md). Without compression there is nothing to share.
_LEAST_BATCH_BYTES: Final = {ZSTD: 0, GZIP: 0, SNAPPY: 1 << 10, LZ4: 256 << 10}
_PARTS_PER_THREAD: Final = 3  # that are decoded, or about to be: a few megabytes each
_LEAST_PART_BYTES: Final = 512 << 10  # decompressed
_OF_A_CHUNK: Final = 0.9  # that a part is to have: what is over would be a chunk of its own


class _Part:
    """Whole batches of a block, whoever decodes them.

    Attributes:
        pos: of the first one in the block.
        start: the offset to begin at.
        end: behind the last one.
        stop: the offset there.
        work: for a thread to do, unless the reader was sooner.
        found: what they gave; None until they are decoded, and where that met an error.
        is_done: whether they are decoded.
    """

    def __init__(self, data: memoryview, pos: int, start: int, stop: int, decode: Decoder) -> None:
        self.pos, self.start, self.end, self.stop = pos, start, len(data), stop
        self.found: Decoded | None = None
        self.is_done = False
        self.work = Work(self.run)
        self._data = data
        self._decode = decode

    def run(self) -> None:
        """Decode them."""
        with suppress(CorruptRecords, MemoryError):  # the reader comes to it, and tells
            self.found = self._decode(self._data, self.pos, self.start)
        self.is_done = True


class Beside:
    """The parts of one block that are decoded side by side.

    Args:
        threads: how many decode beside the reader; with none there are no parts.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._process = os.getpid()
        self._pool: Threads | None = None
        self._parts: deque[_Part] = deque()
        self._thread_ids: set[int] = set()
        self._ratio = 0.0  # of a block's bytes to their content, by what was decoded last

    def note(self, size: int, decoded: Decoded) -> None:
        """So many bytes of a block gave `decoded`."""
        if decoded.decompressed_bytes:
            self._ratio = size / decoded.decompressed_bytes

    @property
    def begins(self) -> int | None:
        """Where the first part does; what is before it is the reader's to decode."""
        return self._parts[0].pos if self._parts else None

    def share(self, there: memoryview, pos: int, start: int, decode: Decoder) -> None:
        """Make parts of what has come of the block, as far as that is worth it.

        Args:
            there: what has come.
            pos: where the reader is in it.
            start: which offset it begins at.
            decode: called by whoever decodes a part.
        """
        self._leave_parents_threads()
        if not self._threads or not self._ratio:
            return
        try:
            while len(self._parts) < _PARTS_PER_THREAD * self._threads:
                if self._parts:
                    pos, start = self._parts[-1].end, self._parts[-1].stop
                part = self._next_part(there, pos, start, decode)
                if part is None:
                    return
                self._begin(part)
        except CorruptRecords:
            pass  # the reader comes to it, and tells
        except RuntimeError:  # there is no thread to be had, as while the interpreter ends
            self._threads = 0
            self.close()

    def _next_part(self, there: memoryview, pos: int, start: int, decode: Decoder) -> _Part | None:
        """About a chunk's worth of batches from `pos` on; None: not enough has come, or pays."""
        left = len(there) - pos
        if not self._parts:
            left //= 2  # one alone is the reader's
        size = min(left, int(DEFAULT_CHUNK_BYTES * self._ratio * _OF_A_CHUNK))
        if size < _LEAST_PART_BYTES * self._ratio or not self._is_worth_it(there, pos):
            return None
        seen = skim(there[: pos + size], pos)
        if seen.next_offset is None:
            return None  # a batch is larger
        return _Part(there[: seen.pos], pos, start, max(start, seen.next_offset), decode)

    def _is_worth_it(self, there: memoryview, pos: int) -> bool:
        batch = read_header(there, pos, len(there))
        if batch is None:
            return False
        least = _LEAST_BATCH_BYTES.get(batch.codec)
        return least is not None and batch.stop - batch.pos >= least * self._ratio

    def _begin(self, part: _Part) -> None:
        if self._pool is None:
            ids = self._thread_ids  # without `self`, which threads would keep from being garbage
            self._pool = Threads(self._threads, "kafkaproto-decode", lambda: ids.add(get_ident()))
        self._parts.append(part)  # first: no thread is in bytes of which `drop` does not know
        self._pool.give(part.work)

    def take(self, pos: int, start: int) -> Decoded | None:
        """What the part there gave, waited for; None: it is the reader's to decode."""
        while self._parts and self._parts[0].pos <= pos:
            part = self._parts[0]
            while not part.is_done:
                self._help(part)
            self._parts.popleft()  # whoever interrupts the waiting still has to `drop` it
            # Of a message of magic 0 or 1 the reader may know better than headers where it ends.
            if part.found is not None and (part.pos, part.start) == (pos, start):
                return part.found
        return None

    def _help(self, awaited: _Part) -> None:
        """Decode a part that no thread has begun, the first of them; else wait."""
        for part in self._parts:
            if not part.is_done and part.work.cancel():
                part.run()
                return
        awaited.work.result()

    def drop(self) -> None:
        """Forget what is not taken; no thread is in the block's bytes any more."""
        self._leave_parents_threads()
        while self._parts:
            work = self._parts[0].work
            if not (work.cancel() or self._is_inside):
                work.exception()
            self._parts.popleft()  # whoever interrupts the waiting still has to come back for it

    @property
    def _is_inside(self) -> bool:
        """Whether this is one of its own threads, which is not to wait for itself.

        A reader that nobody closed is garbage, which Python collects in any thread.
        """
        return get_ident() in self._thread_ids

    def _leave_parents_threads(self) -> None:
        """After a fork: none of them is here, and what they have begun is never done here."""
        if self._process != os.getpid():
            self._parts.clear()
            self._pool, self._threads = None, 0

    def close(self) -> None:
        """As `drop`; the threads end."""
        self.drop()
        if self._pool is not None:
            self._pool.end()
            self._pool = None


def decoding_threads(uses_threads: bool | None) -> int:
    """How many are worth having by `ReadSettings.uses_threads`."""
    if IMPLEMENTATION == "pure":  # which holds the interpreter all the time
        return 0
    return min(_MOST_THREADS, spare_threads(uses_threads))
