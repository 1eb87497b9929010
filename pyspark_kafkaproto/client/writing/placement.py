"""Which partition a row goes to: its own say, its key's, or that of nobody.

Rows without a say go in runs to one partition after the other, picked at random: batches are full
and partitions even in the long run (the Java client's uniform sticky way, KIP-480 and KIP-794).
Whole columns at a time: no row is looked at in Python. Pure.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafkaproto.client.writing.int32 import int32s, int32s_of
from pyspark_kafkaproto.net.producer_config import BY_KEY, ROUND_ROBIN
from pyspark_kafkaproto.records import WriteColumns, group_rows, partition_keys

if TYPE_CHECKING:
    import pyarrow as pa

_NOWHERE = -1


class Group(NamedTuple):
    """The rows of one partition, in their order; `indices` None are all rows."""

    partition: int
    indices: memoryview | None


class Placement:
    """Places the rows of one topic.

    Args:
        partitioner: `murmur2` or `consistent_random` go by the key where there is one; `sticky` and
            `round_robin` never do.
        run_bytes: how much goes to one partition before the next one has its turn.
    """

    def __init__(self, partitioner: str, run_bytes: int) -> None:
        self._partitioner = partitioner
        self._run_bytes = run_bytes
        self._left_bytes = 0
        self._current = _NOWHERE  # not 0: the first run of a writer may be its only one
        # Many small writers, each beginning at 0, would fill the first partitions.
        self._turn = random.randrange(2**31)  # noqa: S311 - a spread, no secret

    def place(
        self,
        columns: WriteColumns,
        given: pa.Array | None,
        row_bytes: int,
        partitions: int,
        available: Sequence[int],
    ) -> Iterator[Group]:
        """The rows of each partition that has any.

        Args:
            columns: the rows.
            given: int32, each row's own say or null; None where no row has one. All in range.
            row_bytes: how large a row is, about.
            partitions: how many the topic has.
            available: those that have a leader; rows that may go anywhere go there.
        """
        if partitions == 1:
            yield Group(0, None)
            return
        row_bytes = max(1, row_bytes)  # null values alone take nothing, and runs have to end
        if given is None and self._goes_anywhere(columns):
            whole = self._one_for_all(columns.rows, row_bytes, available or range(partitions))
            if whole is not None:
                yield Group(whole, None)
                return
        placed = self._placed(columns, given, row_bytes, partitions, available)
        grouped, starts = map(int32s, group_rows(placed, partitions))
        # A few rows may come for a topic of thousands.
        few = columns.rows < partitions
        for partition in sorted(set(int32s(placed))) if few else range(partitions):
            start, stop = starts[partition], starts[partition + 1]
            if start < stop:
                yield Group(partition, grouped[start:stop])

    def _placed(
        self,
        columns: WriteColumns,
        given: pa.Array | None,
        row_bytes: int,
        partitions: int,
        available: Sequence[int],
    ) -> Any:
        """A partition for each row, int32: given, else by key, else by nobody's say."""
        if given is not None and given.null_count == 0:
            return int32s_of(given)
        said = given
        if columns.key is not None and self._partitioner in BY_KEY:
            keyed = partition_keys(columns, partitions, self._partitioner)  # type: ignore[arg-type]
            if given is None and not _has_negative(keyed, columns.rows):
                return keyed
            said = _first_say(given, _array_of(keyed, columns.rows))
        places = available or range(partitions)
        if said is None:
            return self._anywhere(columns.rows, row_bytes, places)
        return _filled(said, self._anywhere(said.null_count, row_bytes, places))

    def _goes_anywhere(self, columns: WriteColumns) -> bool:
        """Whether nobody has a say about any row, and rows go in runs."""
        if self._partitioner == ROUND_ROBIN:
            return False
        return columns.key is None or self._partitioner not in BY_KEY

    def _one_for_all(self, rows: int, row_bytes: int, available: Sequence[int]) -> int | None:
        """One partition for all rows, where they are no more than two runs; None where they are.

        Rows that stay together are not gathered one by one; a run is longer for it at times.
        """
        size_bytes = rows * row_bytes
        if size_bytes > 2 * self._run_bytes:
            return None
        self._begin_run(available)
        self._left_bytes -= size_bytes
        return self._current

    def _begin_run(self, available: Sequence[int]) -> None:
        """Go on to another partition where this one has had its run."""
        if self._left_bytes <= 0 or self._current not in available:
            others = [partition for partition in available if partition != self._current]
            # Two by turns could be unlike: runs are not all of a size, nor in any order.
            choice = others if len(others) > 1 else available
            self._current = random.choice(choice)  # noqa: S311 - a spread, no secret
            self._left_bytes = self._run_bytes

    def _anywhere(self, rows: int, row_bytes: int, available: Sequence[int]) -> array[int]:
        if self._partitioner == ROUND_ROBIN:
            turn = self._turn % len(available)
            self._turn += rows
            cycle = array("i", [*available[turn:], *available[:turn]])
            return (cycle * (rows // len(cycle) + 1))[:rows]
        placed = array("i")
        while len(placed) < rows:
            self._begin_run(available)
            run = min(rows - len(placed), -(-max(self._left_bytes, 1) // row_bytes))
            placed.extend(array("i", [self._current]) * run)
            self._left_bytes -= run * row_bytes
        return placed


def _first_say(given: pa.Array | None, keyed: pa.Array) -> pa.Array:
    """Row by row what it says itself, else its key; null where neither does (-1 in `keyed`)."""
    import pyarrow as pa  # noqa: PLC0415 - heavy, and there already when a row is
    import pyarrow.compute as pc  # noqa: PLC0415 - only where partitions are mixed

    by_key = pc.if_else(pc.less(keyed, 0), pa.scalar(None, pa.int32()), keyed)
    return by_key if given is None else pc.coalesce(given, by_key)


def _filled(said: pa.Array, free: array[int]) -> memoryview:
    """One of `free` after the other in the place of each null; there are as many, or none."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    return int32s_of(pc.replace_with_mask(said, pc.is_null(said), _array_of(free, len(free))))


def _has_negative(keyed: Any, rows: int) -> bool:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    least = pc.min(_array_of(keyed, rows)).as_py() if rows else 0
    return bool(least < 0)


def _array_of(buffer: Any, rows: int) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(buffer)], 0)
