"""Columns to Arrow record batches and back without a copy, and the one Arrow schema.

The schema is what Spark makes of its own Kafka source's schema with time zone UTC: names, order,
types and nullability, the list item named `element`. Spark checks the first batch of a task
against it and trusts the rest, so each batch of a task has the very same schema object.
This module must not know pyspark, sockets or messages.
Layout: https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError
from pyspark_kafkaproto.records import (
    BinaryColumn,
    BinaryInput,
    Columns,
    Damaged,
    Decoded,
    HeadersColumn,
    HeadersInput,
    TimestampInput,
    WriteColumns,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency

_Column = TypeVar("_Column")

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_HEADERS: Final = pa.list_(pa.field("element", _HEADER))

_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS,
}

COLUMN_NAMES: Final = tuple(_TYPES)  # in the order of Spark's own source
# What those who read without Spark are given: where a record stands, and then what it holds.
RECORD_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

# What is kept of a batch that cannot be read. No other column has this type: it marks the column,
# whose name is the user's.
_DAMAGED: Final = pa.struct([pa.field("reason", pa.string()), pa.field("data", pa.binary())])

_BINARY_KINDS: Final = {
    "string", "binary", "large_string", "large_binary", "string_view", "binary_view", "null"
}  # fmt: skip

# A record takes 7 bytes and a topic's name up to 249: what is decompressed bounds the one alone.
TOPIC_BYTES: Final = 16 << 20
_MOST_ROWS: Final = 2**31 - 1  # of an array
_PIECE_KEYS: Final = 1 << 16  # so many header keys may be Python objects at a time

# A surrogate in UTF-8, whole or cut behind its second byte.
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

_WANTED: Final = {
    "key": Columns.KEY,
    "value": Columns.VALUE,
    "topic": Columns(0),
    "partition": Columns(0),
    "offset": Columns.OFFSET,
    "timestamp": Columns.TIMESTAMP,
    "timestampType": Columns.TIMESTAMP_TYPE,
    "headers": Columns.HEADERS,
}


def schema_for(
    column_names: Iterable[str],
    string_columns: Collection[str] = (),
    *,
    damaged_column: str | None = None,
) -> pa.Schema:
    """The Arrow schema of some of the columns, in the order given.

    Args:
        column_names: any of COLUMN_NAMES, each once.
        string_columns: which of key and value are strings instead of binary.
        damaged_column: the name, among `column_names`, of the column for damaged batches.

    Raises:
        ConfigError: a name that is unknown or there twice.
    """
    names = list(column_names)
    allowed = f"the columns are {', '.join(COLUMN_NAMES)}, each at most once"
    if len(set(names)) != len(names) or not set(names) <= {*_TYPES, damaged_column}:
        raise ConfigError("columns", names, allowed)
    if not set(string_columns) <= {"key", "value"}:
        raise ConfigError("columns", sorted(string_columns), "only key and value can be strings")
    types = _TYPES | dict.fromkeys(string_columns, pa.string())
    if damaged_column is not None:
        types[damaged_column] = _DAMAGED
    return pa.schema([(name, types[name]) for name in names])


def wanted_columns(schema: pa.Schema) -> Columns:
    """What to decode for `schema`; topic and partition cost nothing.

    With a key or value as string the offsets are wanted too: an error about one names its offset.
    """
    wanted = Columns(0)
    for field in schema:
        wanted |= _WANTED.get(field.name, Columns(0))
        if _is_text(field):
            wanted |= Columns.OFFSET
    return wanted


def to_record_batches(
    decoded: Decoded, topic: str, partition: int, schema: pa.Schema, option: str = "schema"
) -> list[pa.RecordBatch]:
    """The rows of one decoded chunk, in order, their buffers wrapped and not copied.

    One record batch, but for a chunk of so many small rows that the topic's name takes more than
    TOPIC_BYTES beside them.

    Args:
        decoded: rows of `topic` and `partition`, with the columns of `wanted_columns(schema)`.
        topic: the topic's name.
        partition: the partition's number.
        schema: made by `schema_for`.
        option: what the schema was asked for with.

    Raises:
        ConfigError: a key or value that is to be a string is not UTF-8; names the topic-partition
            and the first such offset, and `option`.
        LocalProtocolError: `decoded` lacks a column of the schema.
    """
    if not schema.names:
        return [_rows_without_columns(decoded.rows)]
    arrays = []
    for name, kind, build, is_text in _plan_of(schema):
        array = build(decoded, topic, partition, kind)
        if is_text:
            _check_text(array, name, decoded, f"{topic}-{partition}", option)
        arrays.append(array)
    shortest = min(map(len, arrays))
    if shortest == decoded.rows:
        return [pa.RecordBatch.from_arrays(arrays, schema=schema)]
    return [
        pa.RecordBatch.from_arrays(
            [_part_of(array, start, shortest, decoded.rows) for array in arrays], schema=schema
        )
        for start in range(0, decoded.rows, shortest)
    ]


def _part_of(array: pa.Array, start: int, count: int, rows: int) -> pa.Array:
    """`count` of `rows` rows, or what is left of them; the shorter array has one value alone."""
    return array.slice(start if len(array) == rows else 0, min(count, rows - start))


def keeps_damaged(schema: pa.Schema) -> bool:
    """Whether a column of the schema is for damaged batches."""
    return any(field.type == _DAMAGED for field in schema)


def damaged_batch(
    damaged: Damaged, topic: str, partition: int, schema: pa.Schema
) -> pa.RecordBatch:
    """One row for a batch that cannot be read: where it lay, its bytes, what is wrong with it."""
    kept = {"reason": damaged.reason, "data": bytes(damaged.data)}
    known = {"topic": topic, "partition": partition, "offset": damaged.start}
    values = [kept if field.type == _DAMAGED else known.get(field.name) for field in schema]
    arrays = [pa.array([value], field.type) for value, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_text(field: pa.Field) -> bool:
    return field.name in ("key", "value") and pa.types.is_string(field.type)


def _rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch that is nothing but a number of rows; `from_arrays` would lose the number."""
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    )


# --- columns


def _wrapped(buffer: Buffer | None) -> pa.Buffer | None:
    return None if buffer is None else pa.py_buffer(buffer)


def _decoded(column: _Column | None) -> _Column:
    if column is None:
        raise LocalProtocolError("the chunk was decoded without a column that the schema has")
    return column


def _binary(column: BinaryColumn, rows: int, kind: pa.DataType) -> pa.Array:
    buffers = [_wrapped(column.validity), _wrapped(column.offsets), _wrapped(column.data)]
    return pa.Array.from_buffers(kind, rows, buffers, -1 if column.validity is not None else 0)


def _fixed(buffer: Buffer, rows: int, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)], 0)


def _headers(column: HeadersColumn, rows: int, kind: pa.DataType) -> pa.Array:
    keys = _replaced(_binary(column.keys, column.pairs, pa.string()))
    values = _binary(column.values, column.pairs, pa.binary())
    pairs = pa.Array.from_buffers(kind.value_type, column.pairs, [None], 0, 0, [keys, values])
    buffers = [_wrapped(column.validity), _wrapped(column.offsets)]
    nulls = -1 if column.validity is not None else 0
    return pa.Array.from_buffers(kind, rows, buffers, nulls, 0, [pairs])


def _replaced(keys: pa.Array) -> pa.Array:
    """Header keys, what is not UTF-8 in them replaced by U+FFFD as Java does."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        starts = range(0, len(keys), _PIECE_KEYS)
        return pa.concat_arrays([_all_replaced(keys.slice(at, _PIECE_KEYS)) for at in starts])
    return keys


def _all_replaced(keys: pa.Array) -> pa.Array:
    """One by one those that differ: few kB of a batch can hold millions of the same key."""
    found = keys.cast(pa.binary()).dictionary_encode()
    texts = pa.array(map(_as_java, found.dictionary.to_pylist()), pa.string())
    return texts.take(found.indices)


def _as_java(content: bytes) -> str:
    """`content` as Java's UTF-8 decoder reads it: one U+FFFD where Python has two or three."""
    return _SURROGATE.sub(b"\xff", content).decode(errors="replace")


def _check_text(array: pa.Array, name: str, decoded: Decoded, place: str, option: str) -> None:
    """A string column has to be UTF-8: Spark would carry anything on unseen."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        row = _first_not_text(array)
        offset = memoryview(_decoded(decoded.offsets)).cast("B").cast("q")[row]
        raise ConfigError(
            option,
            f"{name} string",
            f"the {name} of {place} at offset {offset} is not UTF-8; read it as binary",
        ) from error


def _first_not_text(array: pa.Array) -> int:
    for row, content in enumerate(array.cast(pa.binary()).to_pylist()):
        try:
            (content or b"").decode()
        except UnicodeDecodeError:
            return row
    raise AssertionError("Arrow and Python disagree about UTF-8")


class _Constant:
    """A column of one value: the longest built so far is kept, and shorter ones are cut from it.

    None is longer than `most_rows` of its value.

    One value is kept, not all: a task reads its partitions one after the other. Built from buffers:
    `pa.scalar` and `pa.array` would import pandas, half a second in every worker that has it.
    """

    def __init__(
        self, build: Callable[[Any, int], pa.Array], most_rows: Callable[[Any], int]
    ) -> None:
        self._build = build
        self._most_rows = most_rows
        self._kept: tuple[Any, pa.Array] | None = None

    def rows(self, value: Any, count: int) -> pa.Array:
        """`count` rows of `value`, or as many as there may be."""
        known = self._kept  # looked at once: another thread may put its own in its place
        kept = known[1] if known is not None and known[0] == value else None
        if kept is None or len(kept) < count:
            wanted = count if kept is None else max(count, 2 * len(kept))
            kept = self._build(value, min(wanted, self._most_rows(value)))
            self._kept = (value, kept)
        return kept.slice(0, count)


def _repeated_text(text: str, count: int) -> pa.Array:
    data = text.encode()
    offsets = array("i", range(0, len(data) * count + 1, len(data)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers, 0)


def _repeated_number(number: int, count: int) -> pa.Array:
    return _fixed(array("i", [number]) * count, count, pa.int32())


_topics = _Constant(_repeated_text, lambda text: max(1, TOPIC_BYTES // len(text.encode())))
_partitions = _Constant(_repeated_number, lambda _: _MOST_ROWS)

_Builder: TypeAlias = Callable[[Decoded, str, int, pa.DataType], pa.Array]

_BUILDERS: Final[dict[str, _Builder]] = {
    "key": lambda d, _topic, _partition, kind: _binary(_decoded(d.key), d.rows, kind),
    "value": lambda d, _topic, _partition, kind: _binary(_decoded(d.value), d.rows, kind),
    "topic": lambda d, topic, _partition, _kind: _topics.rows(topic, d.rows),
    "partition": lambda d, _topic, partition, _kind: _partitions.rows(partition, d.rows),
    "offset": lambda d, _topic, _partition, kind: _fixed(_decoded(d.offsets), d.rows, kind),
    "timestamp": lambda d, _topic, _partition, kind: _fixed(_decoded(d.timestamps), d.rows, kind),
    "timestampType": lambda d, _topic, _partition, kind: _fixed(
        _decoded(d.timestamp_types), d.rows, kind
    ),
    "headers": lambda d, _topic, _partition, kind: _headers(_decoded(d.headers), d.rows, kind),
}


class _Plan(NamedTuple):
    """How the columns of a schema are built: name, type, builder, whether it is text."""

    schema: pa.Schema
    columns: tuple[tuple[str, pa.DataType, _Builder, bool], ...]


# A task asks for the same schema again and again; looking into it takes as long as building does.
_last_plan = _Plan(pa.schema([]), ())


def _plan_of(schema: pa.Schema) -> tuple[tuple[str, pa.DataType, _Builder, bool], ...]:
    global _last_plan  # noqa: PLW0603 - a memory of one, replaced whole
    plan = _last_plan
    if plan.schema is not schema:
        columns = [(f.name, f.type, _builder(f), _is_text(f)) for f in schema]
        _last_plan = plan = _Plan(schema, tuple(columns))
    return plan.columns


def _builder(field: pa.Field) -> _Builder:
    if field.type == _DAMAGED:
        return lambda d, _topic, _partition, kind: pa.nulls(d.rows, kind)
    return _BUILDERS[field.name]


# --- columns to write


def write_columns(batch: pa.RecordBatch, *, timestamp_column: str | None = None) -> WriteColumns:
    """The columns `value`, `key` and `headers` of any Arrow batch, to be encoded; others are left.

    Buffers are taken as they are, those of slices too. Only what encoders do not read (views,
    dictionaries, fixed sizes, other units of time) is cast first.

    Args:
        batch: value and key string or binary, headers a list of structs (key, value) of these.
        timestamp_column: which column has the records' timestamps; None for the time of writing.

    Raises:
        ConfigError: a column of a type that no record has, no such timestamp column, or a timestamp
            in it that 64 bits of microseconds cannot tell.
    """
    value, key, headers = (_column(batch, name) for name in ("value", "key", "headers"))
    timestamps = None
    if timestamp_column is not None:
        timestamps = _column(batch, timestamp_column)
        if timestamp_column not in batch.schema.names:
            known = ", ".join(batch.schema.names)
            raise ConfigError("timestampColumn", timestamp_column, f"the columns are {known}")
    return WriteColumns(
        rows=batch.num_rows,
        value=None if value is None else _binary_input(value, "value"),
        key=None if key is None else _binary_input(key, "key"),
        timestamps=None if timestamps is None else _timestamp_input(timestamps, timestamp_column),
        headers=None if headers is None else _headers_input(headers),
    )


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """The column, or None for one that is not there or null throughout."""
    if name not in batch.schema.names:
        return None
    column = batch.column(name)
    return None if pa.types.is_null(column.type) else column


def _refused(name: str, kind: pa.DataType, expected: str) -> ConfigError:
    return ConfigError("schema", f"{name} {kind}", f"{name} has to be {expected}")


def _binary_input(array: pa.Array, name: str) -> BinaryInput:
    kind = array.type
    is_large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if not (is_large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
        array, is_large = as_binary(array, name), True
    validity, offsets, data = array.buffers()
    return BinaryInput(
        offsets=offsets or b"",
        data=data or b"",
        validity=validity if array.null_count else None,
        is_large=is_large,
        first=array.offset,
    )


def as_binary(array: pa.Array, name: str) -> pa.Array:
    """Strings and binaries in any encoding, and nulls, as large binary: no text is decoded.

    Raises:
        ConfigError: it is something else; `name` is the column's.
    """
    is_dictionary = pa.types.is_dictionary(array.type)
    distinct = array.dictionary if is_dictionary else array
    kind = distinct.type
    if str(kind) not in _BINARY_KINDS and not pa.types.is_fixed_size_binary(kind):
        raise _refused(name, array.type, "string or binary")
    # Made long before they are repeated: Arrow cannot decode views, nor beyond 32 bits.
    try:
        binary = distinct.cast(pa.large_binary())
    except pa.ArrowNotImplementedError as error:
        expected = f"no view, which pyarrow reads from 18 on (this is {pa.__version__})"
        raise _refused(name, array.type, expected) from error
    return binary.take(array.indices) if is_dictionary else binary


def _timestamp_input(array: pa.Array, name: str | None) -> TimestampInput:
    if not pa.types.is_timestamp(array.type):
        raise _refused(str(name), array.type, "a timestamp")
    if array.type.unit != "us":
        array = _as_micros(array, str(name))
    validity, micros = array.buffers()
    return TimestampInput(micros or b"", validity if array.null_count else None, array.offset)


def _as_micros(array: pa.Array, name: str) -> pa.Array:
    kind = pa.timestamp("us", array.type.tz)
    if array.type.unit == "ns":
        return _micros_of_nanos(array.cast(pa.int64())).cast(kind)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:  # a producer has put such rows aside before
        expected = f"a time that 64 bits of microseconds can tell: {error}"
        raise _refused(name, array.type, expected) from error


def _micros_of_nanos(nanos: pa.Array) -> pa.Array:
    """Whole microseconds, int64, of which none is later: Arrow's division goes towards 1970."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only for nanoseconds

    micros = pc.divide(nanos, 1000)
    earliest = pc.min_max(nanos).as_py()["min"]
    if earliest is None or earliest >= 0:
        return micros
    return pc.if_else(pc.less(nanos, 0), pc.subtract(pc.divide(pc.add(nanos, 1), 1000), 1), micros)


def _headers_input(array: pa.Array) -> HeadersInput:
    kind = array.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list and pa.types.is_null(kind.value_type):  # of lists that are empty
        kind = pa.large_list(_HEADER) if pa.types.is_large_list(kind) else pa.list_(_HEADER)
        array = array.cast(kind)
    pair = kind.value_type if is_list else pa.null()
    names = [field.name.lower() for field in pair] if pa.types.is_struct(pair) else []
    if names != ["key", "value"]:
        raise _refused("headers", kind, "a list of structs of key and value")
    validity, offsets = array.buffers()[:2]
    pairs = array.values
    return HeadersInput(
        offsets=offsets or b"",
        pairs=len(pairs),
        keys=_binary_input(pairs.field(0), "headers.key"),
        values=_binary_input(pairs.field(1), "headers.value"),
        validity=validity if array.null_count else None,
        is_large=pa.types.is_large_list(kind),
        first=array.offset,
        pairs_validity=pairs.buffers()[0] if pairs.null_count else None,
        pairs_first=pairs.offset,
    )
