"""What a decoder of `records` made of a block, as plain rows that compare with known ones."""

from __future__ import annotations

from struct import iter_unpack
from typing import NamedTuple

from pyspark_kafkaproto.records import Columns
from pyspark_kafkaproto.records.transactions import AbortedTransactions

_END = 1 << 62


class Row(NamedTuple):
    """One record; magic 0 has no time and no timestamp type: both -1."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def read_rows(implementation, block) -> list[Row]:
    """All rows of `block`; `implementation` is the kernel or the reference."""
    decoded = implementation.decode(
        block,
        pos=0,
        start=0,
        stop=_END,
        wanted=Columns.ALL,
        aborted=AbortedTransactions(()),
        check_crcs=True,
        batch_limit_bytes=1 << 24,
        chunk_bytes=1 << 24,
    )
    columns = (
        _integers(decoded.offsets, "q"),
        [micros // 1000 for micros in _integers(decoded.timestamps, "q")],
        _integers(decoded.timestamp_types, "i"),
        _binaries(decoded.key, decoded.rows),
        _binaries(decoded.value, decoded.rows),
        _headers(decoded.headers, decoded.rows),
    )
    return [Row(*cells) for cells in zip(*columns, strict=True)]


def _integers(buffer, code):
    return [number for (number,) in iter_unpack(f"={code}", bytes(buffer))]


def _binaries(column, rows):
    offsets, data = _integers(column.offsets, "i"), bytes(column.data)
    return [
        data[offsets[row] : offsets[row + 1]] if _is_valid(column, row) else None
        for row in range(rows)
    ]


def _headers(column, rows):
    offsets = _integers(column.offsets, "i")
    keys, values = (_binaries(part, column.pairs) for part in (column.keys, column.values))
    pairs = list(zip(keys, values, strict=True))
    return [tuple(pairs[offsets[row] : offsets[row + 1]]) for row in range(rows)]


def _is_valid(column, row):
    return column.validity is None or bytes(column.validity)[row // 8] >> row % 8 & 1
