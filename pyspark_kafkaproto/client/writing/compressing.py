"""Full batches, compressed in threads of their own for a producer that has processors to spare.

Compressing takes longer than all else that a batch goes through, and its libraries let go of the
interpreter. Nothing else happens in these threads: a batch is numbered and sealed by whoever takes
it out of here, in the order in which batches came in. Who seals one that is not compressed does
that first: so go batches that no thread can be had for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from pyspark_kafkaproto.client.processors import spare_threads
from pyspark_kafkaproto.client.threads import Threads, Work
from pyspark_kafkaproto.client.writing.batches import Span
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.net import ProducerConfig
from pyspark_kafkaproto.records import BatchBuilder

_MOST_THREADS: Final = 4
# These take little longer than all the rest: a broker next to us needs the last processor more.
_LIGHT: Final = frozenset({"snappy", "lz4"})
# Smaller ones are compressed before a thread has heard of them.
_WORTH_A_THREAD_BYTES: Final = 32 << 10


def compressing_threads(codec: str) -> int:
    """How many are worth having: all to spare, with snappy and lz4 one fewer; four at most."""
    return max(0, min(_MOST_THREADS, spare_threads() - (1 if codec in _LIGHT else 0)))


class Full(NamedTuple):
    """A batch that takes no more rows: its builder, and the spans of its rows."""

    queue: PartitionQueue
    builder: BatchBuilder
    spans: list[Span]


class Compressing:
    """Batches that are being compressed.

    Args:
        threads: how many may be at the same time; with none no batch goes this way.
        most_bytes: what they may hold together, uncompressed; one is taken in any case.
    """

    def __init__(self, threads: int, most_bytes: int) -> None:
        self._threads = threads
        self._most_bytes = most_bytes
        self.held_bytes = 0
        self._pool: Threads | None = None
        self._under_way: deque[tuple[Full, Work | None]] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in here."""
        return not self._under_way

    def takes(self, builder: BatchBuilder) -> bool:
        """Whether a batch goes this way: a large one, or one that would overtake others."""
        if not self._threads:
            return False
        return not self.is_empty or builder.size_bytes >= _WORTH_A_THREAD_BYTES

    def add(self, full: Full) -> None:
        """Compress a batch."""
        self.held_bytes += full.builder.size_bytes
        self._under_way.append((full, self._begin(full.builder)))

    def _begin(self, builder: BatchBuilder) -> Work | None:
        """Have a thread compress it; None where there is none, as while the interpreter ends."""
        try:
            if self._pool is None:
                self._pool = Threads(self._threads, "kafkaproto-compress")
            work = Work(builder.compress)
            self._pool.give(work)
        except RuntimeError:
            self._leave_pool()
            return None
        return work

    def take(self, *, wait: bool) -> Iterator[Full]:
        """Those that are compressed, in the order in which they came.

        Args:
            wait: for all of them. Otherwise only until there are no more than each thread has begun
                one and can go on with another, nor than may be held.
        """
        while self._under_way:
            full, compressed = self._under_way[0]
            if compressed is not None:
                if not (wait or self._has_many or compressed.done()):
                    return
                compressed.result()
            self._under_way.popleft()
            self.held_bytes -= full.builder.size_bytes
            yield full

    @property
    def _has_many(self) -> bool:
        return len(self._under_way) > 2 * self._threads or self.held_bytes > self._most_bytes

    def close(self) -> None:
        """Let go of what is in here; what comes later begins anew."""
        for _, compressed in self._under_way:
            if compressed is not None:
                compressed.cancel()  # what a thread has begun goes on
        self._under_way.clear()
        self.held_bytes = 0
        self._leave_pool()

    def _leave_pool(self) -> None:
        """Nothing more is given to its threads."""
        if self._pool is not None:
            self._pool.end()
            self._pool = None


def compressing_for(config: ProducerConfig, threads: int | None) -> Compressing:
    """With so many threads, or as many as are to spare for None, if there is anything to do."""
    if config.compression_type == "none":
        threads = 0
    elif threads is None:
        threads = compressing_threads(config.compression_type)
    return Compressing(max(0, threads), config.buffer_memory // 2)
