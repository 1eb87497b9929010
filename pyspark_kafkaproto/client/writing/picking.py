"""Rows of one Arrow batch by the topic and the partition that they name. Pure.

Whole columns at a time, but for rows that are to be refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafkaproto.arrow import as_binary
from pyspark_kafkaproto.client.writing.batches import Rows
from pyspark_kafkaproto.client.writing.int32 import int32s, int32s_of
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.records import group_rows

if TYPE_CHECKING:
    import pyarrow as pa

FIELDS = ("value", "key", "topic", "partition", "headers")  # columns of a batch that count

_NULL_TOPIC = "KAFKA_NULL_TOPIC_IN_DATA"  # Spark's name of it

_TEXTS = {"string", "large_string", "string_view"}
_SHOWN_BYTES = 100  # of what should be the name of a topic
_MOST_MICROS = 2**63 - 1
_MICROS_IN = {"s": 1_000_000, "ms": 1000}  # units of time that reach beyond these


class Picked(NamedTuple):
    """Rows of one topic: a batch of them alone, and their numbers.

    topic: None where they name none. timestamp_column: the one with their timestamps, if any.
    fault: why none of them can be written.
    """

    topic: str | None
    batch: pa.RecordBatch
    rows: Rows
    timestamp_column: str | None
    fault: str | None = None

    def taken(self, rows: memoryview) -> Picked:
        """A copy of some of the rows, int32, without columns that do not count any more.

        Raises:
            ConfigError: a column is of a type that no record has.
        """
        import pyarrow as pa  # noqa: PLC0415 - heavy, and there already when a batch is

        indices = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)], 0)
        wanted = {*FIELDS} - {"topic"} | {self.timestamp_column}  # the topic is known
        names = [name for name in self.batch.schema.names if name in wanted]
        columns = [_taken(name, self.batch.column(name), indices) for name in names]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        numbers = self.rows.numbers
        own = rows if numbers is None else memoryview(array("i", (numbers[row] for row in rows)))
        return self._replace(batch=batch, rows=Rows(self.rows.first, own))


def _taken(name: str, column: pa.Array, indices: pa.Array) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        return _takeable(column).take(indices)
    except pa.ArrowNotImplementedError as error:  # where it is run-end encoded
        expected = f"rows of {name} cannot be picked where it is of this type: decode or cast it"
        raise ConfigError("schema", f"{name} {column.type}", expected) from error


def _takeable(column: pa.Array) -> pa.Array:
    """The column as one of which Arrow can take rows, which it cannot of views."""
    kind = _without_views(column.type)
    return column if kind == column.type else column.cast(kind)


def _without_views(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if is_list and pa.types.is_struct(kind.value_type):
        pair = pa.struct([field.with_type(_without_views(field.type)) for field in kind.value_type])
        whole = kind.value_field.with_type(pair)
        return pa.list_(whole) if pa.types.is_list(kind) else pa.large_list(whole)
    return kind


def size_bytes_of(batch: pa.RecordBatch) -> int:
    """What its rows take in memory; of views, as older pyarrow has it, all that is behind them."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        return int(batch.get_total_buffer_size())


def check_columns(batch: pa.RecordBatch, timestamp_column: str | None) -> None:
    """Refuse a batch without values: a name misspelt would make a tombstone of each row.

    Raises:
        ConfigError: it has no column `value`, not the one with the timestamps, or two of a kind.
    """
    names = batch.schema.names
    given = ", ".join(names)
    if "value" not in names:
        raise ConfigError(
            "columns", given, "a column `value` is needed; nulls in it are tombstones"
        )
    if timestamp_column is not None and timestamp_column not in names:
        raise ConfigError("timestampColumn", timestamp_column, f"the columns are {given}")
    for name in (*FIELDS, timestamp_column):
        if name is not None and names.count(name) > 1:
            raise ConfigError("columns", given, f"a column `{name}`, if any, can be there once")


class ByTopic(NamedTuple):
    """The rows of each topic, copied when it is their turn, and the names of all these topics."""

    names: list[str]
    parts: Iterator[Picked]


def by_topic(whole: Picked) -> ByTopic:
    """The rows of each topic that their column `topic` names; those of one alone are not copied.

    Raises:
        ConfigError: there is no such column of strings.
    """
    batch = whole.batch
    if "topic" not in batch.schema.names:
        raise ConfigError("topic", None, "needed where rows have no column `topic`")
    named = _encoded_names(batch.column("topic"))
    return ByTopic([name for name in named.names if isinstance(name, str)], _parts(whole, named))


class _Named(NamedTuple):
    """The different topics, and each row's as an index, int32; a null's is behind the last one.

    Bytes are one that is no UTF-8: Arrow does not look.
    """

    names: list[str | bytes]
    codes: Any
    has_nulls: bool


def _parts(whole: Picked, named: _Named) -> Iterator[Picked]:
    names = named.names
    if len(names) == 1 and not named.has_nulls and isinstance(names[0], str):
        yield whole._replace(topic=names[0])
        return
    grouped, starts = map(int32s, group_rows(named.codes, len(names) + 1))
    for number, name in enumerate((*names, None)):
        rows = grouped[starts[number] : starts[number + 1]]
        if not len(rows):
            continue
        picked = whole.taken(rows)
        if isinstance(name, str):
            yield picked._replace(topic=name)
        else:
            yield picked._replace(fault=_fault(name))


def _fault(name: bytes | None) -> str:
    if name is None:
        return (
            f"null topic ({_NULL_TOPIC}); "
            "name one in each row, or with `topic` the one that all rows go to"
        )
    return f"its column topic is no UTF-8: {name[:_SHOWN_BYTES]!r}"


def _encoded_names(column: pa.Array) -> _Named:
    import pyarrow as pa  # noqa: PLC0415 - as above

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_plain = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if str(kind) not in _TEXTS:
        raise ConfigError("schema", f"topic {column.type}", "topic has to be a string")
    if not is_plain:  # what a dictionary has may be null, or there twice
        column = as_binary(column, "topic")
    encoded = column.dictionary_encode()
    names = [_text(name) for name in encoded.dictionary.cast(pa.large_binary()).to_pylist()]
    codes = encoded.indices.cast(pa.int32()).fill_null(len(names))
    return _Named(names, int32s_of(codes), encoded.null_count > 0)


def _text(name: bytes) -> str | bytes:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name


def partition_column(batch: pa.RecordBatch) -> pa.Array | None:
    """The rows' own partitions, integers of any size; None where no row has one.

    Raises:
        ConfigError: they are no integers.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    if "partition" not in batch.schema.names:
        return None
    column = batch.column("partition")
    if column.null_count == len(column):
        return None
    if not pa.types.is_integer(column.type):
        raise ConfigError("schema", f"partition {column.type}", "partition has to be an int")
    return column


def own_partitions(batch: pa.RecordBatch) -> pa.Array | None:
    """The same, int32; of rows whose partitions all are the topic's."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    column = partition_column(batch)
    return None if column is None else column.cast(pa.int32())


def is_within(given: pa.Array, count: int) -> bool:
    """Whether all of them are partitions of a topic that has `count`."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only where rows name partitions

    bounds = pc.min_max(given).as_py()
    return bool(bounds["min"] >= 0 and bounds["max"] < count)


def beyond_micros(batch: pa.RecordBatch, timestamp_column: str | None) -> dict[int, str]:
    """Rows whose timestamp 64 bits of microseconds cannot tell, each with why it is refused.

    Only seconds and milliseconds reach so far. Where no row has such a one none is looked at.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    if timestamp_column not in batch.schema.names:
        return {}
    times = batch.column(timestamp_column)
    unit = times.type.unit if pa.types.is_timestamp(times.type) else None
    if unit not in _MICROS_IN:
        return {}
    import pyarrow.compute as pc  # noqa: PLC0415 - only for those two

    numbers, most = times.cast(pa.int64()), _MOST_MICROS // _MICROS_IN[unit]
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (bounds["min"] >= -most and bounds["max"] <= most):
        return {}
    is_beyond = pc.or_(pc.less(numbers, -most), pc.greater(numbers, most))
    return {
        row: f"its timestamp, {numbers[row]} {unit} since 1970, is more than 64 bits of "
        "microseconds can tell"
        for row in pc.indices_nonzero(is_beyond).to_pylist()
    }


def rows_but(rows: int, left_out: Container[int]) -> memoryview:
    """The numbers of `rows` rows but some, int32."""
    return memoryview(array("i", (row for row in range(rows) if row not in left_out)))
