"""What `Producer.send` is given, as Arrow batches to be looked at, in the order in which it came.

Rows may wait here for others: plain records in `gathering`, batches in `coalescing`. Knows nothing
of topics and brokers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.client.writing.coalescing import Coalescing, Part
from pyspark_kafkaproto.client.writing.gathering import Gathering
from pyspark_kafkaproto.client.writing.picking import check_columns
from pyspark_kafkaproto.client.writing.plain import ProducerRecord
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

TIMESTAMP = "timestamp"  # the column of those that plain records become

# Drawn from an iterator before any is looked at: it may give more than memory holds, or be slow.
_DRAWN_RECORDS = 100
_DRAWN_S = 0.02


class Intake:
    """Rows that were given to a producer, and not looked at yet.

    Args:
        linger_s, batch_bytes, memory_bytes: of the producer, see `coalescing`.
        timestamp_column: of Arrow batches, the one with the records' timestamps; None for now.

    Attributes:
        given: how many rows were, to whatever end.
    """

    def __init__(
        self,
        linger_s: float,
        batch_bytes: int,
        memory_bytes: int,
        timestamp_column: str | None,
    ) -> None:
        self._timestamp_column = timestamp_column
        self._gathering = Gathering(linger_s, batch_bytes)
        self._coalescing = Coalescing(linger_s, batch_bytes, memory_bytes)
        self.given = 0

    def take_batch(self, batch: pa.RecordBatch) -> list[Part]:
        """Take an Arrow batch; what is to be looked at now.

        Raises:
            ConfigError: it has not the columns that it has to have.
        """
        check_columns(batch, self._timestamp_column)
        self.given += batch.num_rows
        parts = [*self._gathered(), *self._coalescing.add(batch, self._timestamp_column)]
        return parts + self._coalescing.take_overdue()

    def take_records(self, records: list[Any]) -> list[Part] | None:
        """Take plain records; what is to be looked at now, None while others may follow fast.

        Raises:
            ConfigError: see `gathering`.
        """
        self.given += len(records)
        if not self._gathering.add(records):
            return None
        return self._gathered() + self._coalescing.take_overdue()

    def take_all(self) -> list[Part]:
        """All that waits: none is left, and the next rows are looked at at once."""
        parts = self._gathered() + self._coalescing.take()
        self.start_over()
        return parts

    def note_spread(self, partitions: int) -> None:
        """To how many partitions the rows of the last part went."""
        self._coalescing.note_spread(partitions)

    def start_over(self) -> None:
        """Forget what waits."""
        self._gathering.start_over()
        self._coalescing.start_over()

    def _gathered(self) -> list[Part]:
        batch = self._gathering.take()
        return [] if batch is None else self._coalescing.add(batch, TIMESTAMP)


def iterator_of(data: object) -> Iterator[Any]:
    """Plain records that are no list, to be drawn.

    Raises:
        ConfigError: it is no iterable of records.
    """
    if isinstance(data, ProducerRecord):  # a tuple: its parts would be the records
        raise ConfigError("records", type(data).__name__, "expected a list: send([record])")
    # Characters, keys or the names of columns would be the records of the latter; a series of
    # pandas, which has no columns, may hold records as a list does.
    is_other = isinstance(data, (str, bytes, Mapping)) or hasattr(data, "columns")
    if is_other or not isinstance(data, Iterable):
        allowed = "expected records in a list, or an Arrow batch: "
        allowed += "pa.RecordBatch.from_pandas(frame), .from_pydict(columns)"
        raise ConfigError("records", type(data).__name__, allowed)
    return iter(data)


def next_of(records: Iterator[Any]) -> list[Any]:
    """Some more of them; none at the end."""
    drawn: list[Any] = []
    until = time.monotonic() + _DRAWN_S
    for record in records:
        drawn.append(record)
        if len(drawn) >= _DRAWN_RECORDS or time.monotonic() >= until:
            break
    return drawn
