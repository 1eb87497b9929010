"""Decoded rows as plain buffers, in the memory layout of Arrow columns.

This module knows nothing of pyarrow: a buffer is any object with the buffer protocol, and
`arrow.py` wraps it without a copy. Layout: https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.records.transactions import AbortedTransactions

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


class Columns(IntFlag):
    """The columns a caller wants. What is not asked for is neither copied nor built."""

    OFFSET = 1
    TIMESTAMP = 2
    TIMESTAMP_TYPE = 4
    KEY = 8
    VALUE = 16
    HEADERS = 32
    ALL = 63


class BinaryColumn(NamedTuple):
    """`rows` byte strings.

    offsets: int32, rows + 1 of them. data: the bytes, end to end. validity: one bit per row, least
    significant first, 0 for null; None when no row is null.
    """

    offsets: Buffer
    data: Buffer
    validity: Buffer | None


class HeadersColumn(NamedTuple):
    """`rows` lists of (key, value) pairs; a record without headers is null.

    offsets: int32, rows + 1 of them, counting pairs. validity: as in BinaryColumn. Keys are never
    null and are whatever bytes the producer wrote, not always UTF-8.
    """

    offsets: Buffer
    validity: Buffer | None
    pairs: int
    keys: BinaryColumn
    values: BinaryColumn


@dataclass(slots=True)
class Decoded:
    """What one call of `decode` read: `rows` rows and where reading ended.

    Attributes:
        rows: number of rows, the same in each column.
        pos: byte position in the block of the first batch not read.
        next_offset: the first offset not read; `start` when no batch was whole. It moves over
            control, aborted and empty batches too, and is never above `stop`.
        passed_over: offsets in [start, next_offset) that gave no row: holes left by compaction,
            control batches, aborted transactions.
        batches: batches read, those that gave no row included.
        decompressed_bytes: size of the records in them that were walked through.
        max_batch_bytes: the largest of these.
        aborted: how far the aborted transactions were followed, for the next call on this block.
        offsets: int64.
        timestamps: int64, microseconds since 1970 UTC (Kafka's milliseconds times 1,000).
        timestamp_types: int32, 0 CreateTime and 1 LogAppendTime; -1 for magic 0, which has no
            timestamps (they read -1 ms), as in the Java client.
        key, value, headers: see the classes. A column that was not wanted is None.
    """

    rows: int
    pos: int
    next_offset: int
    passed_over: int
    batches: int
    decompressed_bytes: int
    max_batch_bytes: int
    aborted: AbortedTransactions
    offsets: Buffer | None = None
    timestamps: Buffer | None = None
    timestamp_types: Buffer | None = None
    key: BinaryColumn | None = None
    value: BinaryColumn | None = None
    headers: HeadersColumn | None = None


class Skimmed(NamedTuple):
    """What the headers of a block's batches say, before anything is decoded.

    next_offset: the first offset after the last whole batch, None when no batch is whole.
    pos: byte position of the end of the last whole batch. batches: number of whole batches.
    missing_bytes: full size of the batch that the block's end cuts, 0 when there is none or too
    little of it to say. leader_epoch: that of the last whole batch, as its leader wrote it (no CRC
    covers it); -1 where there is none, and for messages of magic 0 and 1.
    """

    next_offset: int | None
    pos: int
    batches: int
    missing_bytes: int
    leader_epoch: int
