"""Arrow batches with few rows for each partition, put together until there are more.

Finding the rows of a partition and appending them costs the same for one row as for hundreds: a
batch of 4,000 rows for 500 partitions is 500 small appends. How far rows spread is learned from the
last batch that was looked at. Knows nothing of topics and brokers.
"""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING

from pyspark_kafkaproto.client.writing.picking import FIELDS, size_bytes_of

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_S = 0.1  # between two calls, and from the first batch to the last one
_MOST_BYTES = 4 << 20  # held, and copied once
_ROWS_EACH = 512  # of a partition: more make no difference
_NOW = "kafkaproto.now"  # the column with the time at which a row came that has no other

# A batch, and which of its columns has the timestamps.
Part = tuple["pa.RecordBatch", str | None]


class Coalescing:
    """Batches that were taken and not looked at yet.

    Args:
        linger_s: how long rows may wait for others; with 0 nothing is held.
        batch_bytes: what fills a batch of one partition.
        memory_bytes: of all that a producer may hold.
    """

    def __init__(self, linger_s: float, batch_bytes: int, memory_bytes: int) -> None:
        self._most_s = min(linger_s, _MOST_S)
        self._batch_bytes = batch_bytes
        self._most_bytes = min(_MOST_BYTES, memory_bytes // 4)
        self._held: list[pa.RecordBatch] = []
        self._kind: tuple[pa.Schema, str | None] | None = None  # of what is held, as it came
        self._rows = self._bytes = 0
        self._spread = 0
        self._since = self._last_at = float("-inf")

    def note_spread(self, partitions: int) -> None:
        """To how many partitions the rows of the last part went."""
        self._spread = partitions

    def add(self, batch: pa.RecordBatch, timestamp_column: str | None) -> list[Part]:
        """Take a batch; what is to be looked at now, in the order in which it came."""
        if not batch.num_rows:
            return []
        now = time.monotonic()
        is_seldom = now - self._last_at >= self._most_s
        self._last_at = now
        kind, size_bytes = (batch.schema, timestamp_column), size_bytes_of(batch)
        due = [] if kind == self._kind else self.take()
        if not self._held and (is_seldom or self._is_enough(batch.num_rows, size_bytes)):
            return [*due, (batch, timestamp_column)]
        if size_bytes >= self._most_bytes or not _can_wait(batch, timestamp_column):
            return [*due, *self.take(), (batch, timestamp_column)]
        if not self._held:
            self._since, self._kind = now, kind
        self._held.append(_with_times(batch, timestamp_column))
        self._rows += batch.num_rows
        self._bytes += size_bytes
        if self._is_enough(self._rows, self._bytes) or now - self._since >= self._most_s:
            return [*due, *self.take()]
        return due

    def _is_enough(self, rows: int, size_bytes: int) -> bool:
        """Whether nothing is gained by more; or batches are full, of which nobody knew."""
        most_bytes = min(self._most_bytes, self._spread * self._batch_bytes)
        return rows >= self._spread * _ROWS_EACH or size_bytes >= most_bytes

    def take_overdue(self) -> list[Part]:
        """What is held, if it has waited for long enough."""
        is_overdue = self._held and time.monotonic() - self._since >= self._most_s
        return self.take() if is_overdue else []

    def take(self) -> list[Part]:
        """What is held."""
        import pyarrow as pa  # noqa: PLC0415 - heavy, and there already when a batch is

        held, kind = self._held, self._kind
        self._held, self._kind, self._rows, self._bytes = [], None, 0, 0
        if kind is None:
            return []
        whole = pa.Table.from_batches(held).combine_chunks()
        return [(part, _NOW if kind[1] is None else kind[1]) for part in whole.to_batches()]

    def start_over(self) -> None:
        """Forget what is held, and that there was anything: the next is looked at at once."""
        self._held, self._kind, self._rows, self._bytes = [], None, 0, 0
        self._last_at = float("-inf")


def _can_wait(batch: pa.RecordBatch, timestamp_column: str | None) -> bool:
    """Whether several like it can be put together, and be what they are one by one.

    Not with dictionaries, whose codes may be too few for all the different values; nor with views,
    which say little of the memory that they hold; nor where rows without a time would get the
    second of now. What no record has is refused at once, with all its columns.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    types = dict(zip(batch.schema.names, batch.schema.types, strict=True))
    if timestamp_column is not None:
        kind = types.get(timestamp_column)
        if timestamp_column in FIELDS or kind is None or not pa.types.is_timestamp(kind):
            return False
        if kind.unit == "s" and batch.column(timestamp_column).null_count:
            return False
    return all(_is_plain(name, types[name]) for name in FIELDS if name in types)


def _is_plain(name: str, kind: pa.DataType) -> bool:
    """Whether the field can be of this type, and is more than a reference to what is elsewhere."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_null(kind):
        return True
    if name == "partition":
        return bool(pa.types.is_integer(kind))
    if name == "headers":
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        pair = kind.value_type if is_list else kind
        return bool(pa.types.is_struct(pair)) and all(_is_content(field.type) for field in pair)
    return _is_content(kind)


def _is_content(kind: pa.DataType) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_text or is_bytes or pa.types.is_fixed_size_binary(kind))


def _with_times(batch: pa.RecordBatch, timestamp_column: str | None) -> pa.RecordBatch:
    """What is written of a batch, with the time of now for each row that has none of its own."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    columns = {name: batch.column(name) for name in FIELDS if name in batch.schema.names}
    if timestamp_column is None:
        columns[_NOW] = _now(batch.num_rows)
    else:
        times = batch.column(timestamp_column)
        if times.null_count:
            import pyarrow.compute as pc  # noqa: PLC0415 - only where some have none

            times = pc.coalesce(times, _now(batch.num_rows).cast(times.type, safe=False))
        columns[timestamp_column] = times
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _now(rows: int) -> pa.Array:
    """The time, once for each row."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    micros = array("q", [time.time_ns() // 1000]) * rows
    return pa.Array.from_buffers(pa.timestamp("us", "UTC"), rows, [None, pa.py_buffer(micros)])
