"""What a member has fetched and not handed out, in its order; of paused partitions it waits aside.

Whose rows come next is decided here, how they are made is `reading`'s, what is fetched `tail`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark_kafkaproto.client.reading.beside import Beside
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.cluster import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class BlockRows:
    """The rows of one block that are still to be handed out.

    Attributes:
        partition: whose they are.
        batches: gives them, made as they are asked for.
    """

    def __init__(self, block: Block, batches: Iterator[pa.RecordBatch]) -> None:
        self.partition: TopicPartition = block.progress.topic_partition
        self.batches = batches
        self._block = block
        self._is_kept = False

    def keep(self) -> None:
        """Have them outlast the answer that they came in."""
        if not self._is_kept:
            self._block.keep()
            self._is_kept = True


class Fetched:
    """All of it, block by block.

    Args:
        beside: threads that decode parts of the block whose rows are handed out.
    """

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._in_turn: deque[BlockRows] = deque()
        self._aside: list[BlockRows] = []  # of partitions that were paused as their turn came
        self._last: BlockRows | None = None  # whose rows the last ones were

    def add(self, blocks: Iterable[BlockRows]) -> None:
        """What has come behind all that was there; nothing of that may be left but aside."""
        self._in_turn.extend(blocks)

    def next_batch(self, paused: Collection[TopicPartition]) -> pa.RecordBatch | None:
        """Rows of a partition that is not paused; None: there are none, nor in the last answer."""
        self._resume(paused)
        while self._in_turn:
            rows = self._in_turn[0]
            if rows.partition in paused:
                self._set_aside(rows)
                continue
            if rows is not self._last:
                self._beside.drop()  # its threads know one block at a time
                self._last = rows
            batch = next(rows.batches, None)
            if batch is not None:
                return batch
            self._in_turn.popleft()
        return None

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what waits aside of these."""
        self._aside = [rows for rows in self._aside if rows.partition not in partitions]

    def clear(self) -> None:
        """Forget all."""
        # First: threads may be in what was fetched. Not as the rows go, where an interrupt of the
        # waiting would be lost, and parts of one partition stay for the next one.
        self._beside.drop()
        self._last = None
        self._in_turn.clear()
        self._aside.clear()

    def _resume(self, paused: Collection[TopicPartition]) -> None:
        """Before all others, which have come later, at least of the same partition."""
        resumed = [rows for rows in self._aside if rows.partition not in paused]
        if resumed:
            self._in_turn.extendleft(reversed(resumed))
            self._aside = [rows for rows in self._aside if rows.partition in paused]

    def _set_aside(self, rows: BlockRows) -> None:
        if rows is self._last:
            self._beside.drop()  # before its bytes go elsewhere
            self._last = None
        rows.keep()
        self._aside.append(rows)
        self._in_turn.popleft()
