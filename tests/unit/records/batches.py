"""Batches made by hand, and decoded columns as Python values."""

from __future__ import annotations

from typing import NamedTuple

from pyspark_kafkaproto.records import layout
from pyspark_kafkaproto.records.encoding import sealed, zigzag

# Positions of the fields of a batch's header that tests overwrite, with their sizes.
FIELDS = {
    "base_offset": (0, 8),
    "length": (8, 4),
    "leader_epoch": (12, 4),
    "magic": (16, 1),
    "crc": (17, 4),
    "attributes": (21, 2),
    "last_offset_delta": (23, 4),
    "base_timestamp": (27, 8),
    "max_timestamp": (35, 8),
    "producer_id": (43, 8),
    "record_count": (57, 4),
}


class Row(NamedTuple):
    """One decoded row; what was not decoded is None."""

    offset: int | None
    timestamp_us: int | None
    timestamp_type: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] | None


def with_fields(batch: bytes, *, reseal: bool = True, **fields: int) -> bytes:
    """`batch` with header fields overwritten, its CRC made right again."""
    changed = bytearray(batch)
    for name, number in fields.items():
        pos, size = FIELDS[name]
        changed[pos : pos + size] = number.to_bytes(size, signed=True)
    return sealed(changed) if reseal else bytes(changed)


def raw_batch(body: bytes, count: int, **fields: int) -> bytes:
    """A batch around any bytes, right in all but what `body`, `count` and `fields` say."""
    header = bytearray(layout.HEADER_SIZE)
    header[16] = layout.MAGIC_V2
    length = layout.HEADER_SIZE + len(body) - layout.LOG_OVERHEAD
    defaults = {
        "length": length,
        "producer_id": -1,
        "last_offset_delta": max(0, count - 1),
        "record_count": count,
    }
    return with_fields(bytes(header) + body, **(defaults | fields))


def raw_record(content: bytes, size: int | None = None) -> bytes:
    """A record around any content, led by its size or by the one given."""
    return zigzag(len(content) if size is None else size) + content


def rows_of(decoded) -> list[Row]:
    """All rows, taken from the buffers as Arrow would."""
    count = decoded.rows
    columns = (
        _numbers(decoded.offsets, "q", count),
        _numbers(decoded.timestamps, "q", count),
        _numbers(decoded.timestamp_types, "i", count),
        _strings(decoded.key, count),
        _strings(decoded.value, count),
        _lists(decoded.headers, count),
    )
    return [Row(*fields) for fields in zip(*columns, strict=True)]


def _numbers(buffer, kind: str, count: int) -> list:
    if buffer is None:
        return [None] * count
    numbers = memoryview(buffer).cast("B").cast(kind).tolist()
    assert len(numbers) == count
    return numbers


def _is_valid(validity, row: int) -> bool:
    return validity is None or bool(memoryview(validity)[row // 8] >> row % 8 & 1)


def _strings(column, count: int) -> list:
    if column is None:
        return [None] * count
    offsets = _numbers(column.offsets, "i", count + 1)
    data = bytes(column.data)
    assert offsets[0] == 0
    assert offsets[-1] == len(data)
    if column.validity is not None:
        assert memoryview(column.validity).nbytes == (count + 7) // 8
    return [
        data[offsets[row] : offsets[row + 1]] if _is_valid(column.validity, row) else None
        for row in range(count)
    ]


def _lists(column, count: int) -> list:
    if column is None:
        return [None] * count
    offsets = _numbers(column.offsets, "i", count + 1)
    assert offsets[-1] == column.pairs
    pairs = list(
        zip(
            _strings(column.keys, column.pairs),
            _strings(column.values, column.pairs),
            strict=True,
        )
    )
    return [
        tuple(pairs[offsets[row] : offsets[row + 1]]) if _is_valid(column.validity, row) else None
        for row in range(count)
    ]
