"""Records as Python values: what a caller without Arrow has, and what a dead letter is made of.

Slow by nature, an object per record: the way of the data never comes through here.
"""

from __future__ import annotations

import math
import operator
import reprlib
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafkaproto.arrow import as_binary, write_columns
from pyspark_kafkaproto.client.writing.int32 import int32s
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.records import (
    BatchBuilder,
    BinaryColumn,
    BinaryInput,
    Columns,
    Decoded,
    HeadersInput,
    TimestampInput,
    WriteColumns,
    decode,
)

if TYPE_CHECKING:
    import pyarrow as pa

_NO_LIMIT = 2**31 - 1
_MICROS = 1000
_IN_A_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
# What Python and Arrow say of values that do not fit a column.
_UNUSABLE = (TypeError, ValueError, OverflowError)
_MOST_MILLIS = (2**63 - 1) // _MICROS  # encoders take microseconds


class ProducerRecord(NamedTuple):
    """One record to write.

    value, key: bytes, or text that is written as UTF-8; a null value is a tombstone.
    topic: where to, with a producer that has no topic of its own; one that has goes by that.
    partition: None for the partitioner's.
    timestamp_ms: milliseconds since 1970 UTC; None for now.
    headers: (key, value) pairs; keys are not unique.
    """

    value: bytes | str | None = None
    key: bytes | str | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str | bytes, bytes | None]] = ()


def to_arrow(
    records: Iterable[ProducerRecord], times_ms: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Records as columns, in the shape that `Producer.send` takes; without those that none has.

    Args:
        records: in their order.
        times_ms: of each record, for where it has no timestamp of its own; None is now.

    Raises:
        ConfigError: one has a type or a value that no record has.
    """
    import pyarrow as pa  # noqa: PLC0415 - here and nowhere else values become columns

    given = list(records)
    if times_ms is None:
        times_ms = [time.time_ns() // 1_000_000] * len(given)
    try:
        columns = _columns_of(given, times_ms)
    except _UNUSABLE:
        for record in given:
            _check(record)
        raise
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def cannot_be(record: ProducerRecord, why: Exception) -> ConfigError:
    """The error of a record with a type or a value that no record has."""
    shown = f"ProducerRecord{reprlib.repr(tuple(record))}"
    return ConfigError("records", shown, f"one cannot be used: {why}")


def _check(record: ProducerRecord) -> None:
    try:
        _columns_of([record], [0])
    except _UNUSABLE as error:
        raise cannot_be(record, error) from error


def _columns_of(given: Sequence[ProducerRecord], times_ms: Sequence[int]) -> dict[str, pa.Array]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    micros = [
        (now_ms if record.timestamp_ms is None else _as_int(record.timestamp_ms)) * _MICROS
        for record, now_ms in zip(given, times_ms, strict=True)
    ]
    try:
        times = pa.array(micros, pa.timestamp("us", "UTC"))
    except OverflowError:
        # As milliseconds such a row can be told by its number, and be put aside.
        times = pa.array([number // _MICROS for number in micros], pa.timestamp("ms", "UTC"))
    columns = {
        "value": pa.array([record.value for record in given], pa.large_binary()),
        "topic": pa.array([record.topic for record in given], pa.string()),
        "timestamp": times,
    }
    # What none of them has would be looked at row by row all the same.
    if any(record.key is not None for record in given):
        columns["key"] = pa.array([record.key for record in given], pa.large_binary())
    if any(record.partition is not None for record in given):
        # Arrow would cut a fraction off.
        partitions = [
            None if record.partition is None else operator.index(record.partition)
            for record in given
        ]
        try:
            columns["partition"] = pa.array(partitions, pa.int32())
        except pa.ArrowInvalid:
            # With 64 bits such a row can be told by its number, and be put aside.
            columns["partition"] = pa.array(partitions, pa.int64())
    if any(record.headers for record in given):
        pair = pa.struct([("key", pa.binary()), ("value", pa.binary())])
        headers = [[(key, value) for key, value in record.headers] for record in given]
        columns["headers"] = pa.array(headers, pa.list_(pair))
    return columns


def _as_int(number: Any) -> Any:
    """A number as a whole one of Python's: NumPy's may be too short to multiply.

    Arrow takes none of those, and would cut a fraction off towards 1970.
    """
    if isinstance(number, float):
        return math.floor(number)
    return operator.index(number) if hasattr(number, "__index__") else number


def record_at(batch: pa.RecordBatch, row: int, timestamp_column: str | None) -> ProducerRecord:
    """One row of what `Producer.send` took; without its topic and partition.

    In bytes: what Arrow calls a string need not be UTF-8.

    Raises:
        ConfigError: a column of a type that no record has.
    """
    write_columns(batch.slice(row, 0), timestamp_column=timestamp_column)  # looks at the types
    one = batch.slice(row, 1)
    columns = dict(zip(one.schema.names, one.columns, strict=True))
    return ProducerRecord(
        value=_content_of(columns.get("value")),
        key=_content_of(columns.get("key")),
        timestamp_ms=_timestamp_of(columns.get(timestamp_column or "")),
        headers=_headers_of(columns.get("headers")),
    )


def _content_of(column: pa.Array | None) -> bytes | None:
    return None if column is None or column.null_count else as_binary(column, "")[0].as_py()


def _headers_of(column: pa.Array | None) -> list[tuple[str | bytes, bytes | None]]:
    """The pairs of one row but those without a key, which may be why it is here."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if column is None or column.null_count or pa.types.is_null(column.type.value_type):
        return []
    parts = column[0].values.flatten()
    keys, contents = (as_binary(part, "headers").to_pylist() for part in parts)
    return [pair for pair in zip(keys, contents, strict=True) if pair[0] is not None]


def _timestamp_of(column: pa.Array | None) -> int | None:
    """Milliseconds; None for one that no record has, which may be why its row is here."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if column is None or column.null_count:
        return None
    number: int = column.cast(pa.int64())[0].as_py()
    found = number * 1000 // _IN_A_SECOND[column.type.unit]
    return found if 0 <= found <= _MOST_MILLIS else None


# --- record batches, taken apart again


def decoded_batch(data: bytes, records: int) -> Decoded:
    """All columns of a batch that we have encoded."""
    return decode(
        data,
        start=0,
        stop=records,
        wanted=Columns.ALL,
        check_crcs=False,
        batch_limit_bytes=_NO_LIMIT,
    )


def encoded_part(decoded: Decoded, rows: Sequence[int], codec: int, level: int | None) -> bytes:
    """Some rows of a decoded batch as a batch of their own."""
    builder = BatchBuilder(codec=codec, level=level, limit_bytes=_NO_LIMIT)
    builder.append(_columns(decoded), array("i", rows), 0, 0)
    return builder.finish()


def encoded_records(records: Iterable[ProducerRecord], codec: int, level: int | None) -> bytes:
    """Records as a batch of their own; those without a timestamp get the time of now."""
    builder = BatchBuilder(codec=codec, level=level, limit_bytes=_NO_LIMIT)
    columns = write_columns(to_arrow(records), timestamp_column="timestamp")
    builder.append(columns, None, 0, time.time_ns() // 1_000_000)
    return builder.finish()


def records_of(decoded: Decoded, rows: Iterable[int]) -> list[ProducerRecord]:
    """Some rows of a decoded batch as values."""
    assert decoded.timestamps is not None  # noqa: S101 - all columns were decoded
    micros = memoryview(decoded.timestamps).cast("B").cast("q")
    return [
        ProducerRecord(
            value=_content(decoded.value, row),
            key=_content(decoded.key, row),
            timestamp_ms=micros[row] // _MICROS,
            headers=_pairs(decoded, row),
        )
        for row in rows
    ]


def _columns(decoded: Decoded) -> WriteColumns:
    value, key, headers = decoded.value, decoded.key, decoded.headers
    assert value is not None and key is not None and headers is not None  # noqa: S101, PT018 - all were decoded
    assert decoded.timestamps is not None  # noqa: S101 - as above
    return WriteColumns(
        rows=decoded.rows,
        value=BinaryInput(*value),
        key=BinaryInput(*key),
        timestamps=TimestampInput(decoded.timestamps),
        headers=HeadersInput(
            headers.offsets,
            headers.pairs,
            BinaryInput(*headers.keys),
            BinaryInput(*headers.values),
            headers.validity,
        ),
    )


def _content(column: BinaryColumn | None, row: int) -> bytes | None:
    assert column is not None  # noqa: S101 - all columns were decoded
    validity, offsets = column.validity, int32s(column.offsets)
    if validity is not None and not memoryview(validity).cast("B")[row >> 3] >> (row & 7) & 1:
        return None
    return bytes(memoryview(column.data).cast("B")[offsets[row] : offsets[row + 1]])


def _pairs(decoded: Decoded, row: int) -> list[tuple[str | bytes, bytes | None]]:
    headers = decoded.headers
    assert headers is not None  # noqa: S101 - all columns were decoded
    offsets = int32s(headers.offsets)
    return [
        (_content(headers.keys, pair) or b"", _content(headers.values, pair))
        for pair in range(offsets[row], offsets[row + 1])
    ]
