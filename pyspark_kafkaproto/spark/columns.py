"""The source's columns as Spark types, and which subsets of them a user may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_kafkaproto.errors import ConfigError

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

# In the order of Spark's own connector.
_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}
# As in `arrow`, which whoever only plans does without.
COLUMN_NAMES = tuple(_TYPES)

# What is kept of a batch that cannot be read.
DAMAGED = StructType([StructField("reason", StringType()), StructField("data", BinaryType())])
_AS_TEXT = frozenset({"key", "value"})
_BETWEEN_COLUMNS = re.compile(r",(?![^<]*>)")  # not within a type
_AROUND_MARKS = re.compile(r"\s*([<>:,])\s*")  # of a type, which Spark takes with blanks there


def default_schema(*, include_headers: bool, damaged_column: str | None = None) -> StructType:
    """The schema of Spark's own connector, and the column for damaged batches if there is one."""
    return StructType(
        [StructField(name, kind) for name, kind in _TYPES.items() if name != "headers"]
        + ([StructField("headers", _TYPES["headers"])] if include_headers else [])
        + ([] if damaged_column is None else [StructField(damaged_column, DAMAGED)])
    )


def parse_columns(option: str, text: str, damaged_column: str | None = None) -> StructType:
    """`key string, value, offset`: names, each with an optional type, separated by commas."""
    fields: list[StructField] = []
    for part in _BETWEEN_COLUMNS.split(text):
        name, _, kind = " ".join(part.split()).partition(" ")
        if any(field.name == name for field in fields):
            raise ConfigError(option, text, f"{name!r} is there twice: name it once")
        if name not in _TYPES and name != damaged_column:
            known = [*_TYPES, *([damaged_column] if damaged_column else [])]
            raise ConfigError(option, text, f"no column {name!r}: expected some of {known}")
        kinds: list[DataType] = [DAMAGED] if name == damaged_column else _allowed_types(name)
        fields.append(StructField(name, _named_type(option, text, name, kind.lower(), kinds)))
    return checked_schema(StructType(fields), damaged_column)


def checked_schema(schema: StructType, damaged_column: str | None = None) -> StructType:
    """`schema` if it is a subset of the source's columns, each once, in any order.

    Args:
        schema: what the user asked for.
        damaged_column: the name of the column for damaged batches, if there may be one.

    Raises:
        ConfigError: names the column, its type and what is allowed.
    """
    seen = set()
    for field in schema.fields:
        if field.name == damaged_column and field.dataType == DAMAGED and field.name not in seen:
            seen.add(field.name)
            continue
        if field.name not in _TYPES or field.name in seen:
            reason = "is there twice" if field.name in seen else "is not a column of this source"
            raise ConfigError(
                "schema", schema.simpleString(), f"{field.name!r} {reason}; there are {_allowed()}"
            )
        if not field.nullable:
            raise ConfigError(
                "schema", f"{field.name} NOT NULL", "columns of this source are nullable"
            )
        if field.dataType not in _allowed_types(field.name):
            given = field.dataType.simpleString()
            names = _names(_allowed_types(field.name))
            inside = ", and what is inside nullable, too" if given in names else ""
            expected = f"expected {' or '.join(names)}{inside}"
            raise ConfigError("schema", f"{field.name} {given}", expected)
        seen.add(field.name)
    if not seen:
        raise ConfigError("schema", schema.simpleString(), f"expected some of {_allowed()}")
    return schema


def _named_type(option: str, text: str, name: str, kind: str, kinds: list[DataType]) -> DataType:
    if not kind:
        return kinds[0]
    for allowed in kinds:
        if _AROUND_MARKS.sub(r"\1", kind) in {allowed.simpleString(), allowed.typeName()}:
            return allowed
    raise ConfigError(option, text, f"column {name} is {' or '.join(_names(kinds))}, not {kind}")


def _allowed_types(name: str) -> list[DataType]:
    """The types that a column of records may be asked for as, the first one by default."""
    return [_TYPES[name], StringType()] if name in _AS_TEXT else [_TYPES[name]]


def _names(kinds: Iterable[DataType]) -> list[str]:
    return [kind.simpleString() for kind in kinds]


def _allowed() -> str:
    return ", ".join(f"{name} {' or '.join(_names(_allowed_types(name)))}" for name in _TYPES)
