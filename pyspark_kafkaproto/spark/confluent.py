"""Column functions for values framed by Confluent's serialisers: schema id and payload apart.

    from pyspark.sql.avro.functions import from_avro
    from pyspark_kafkaproto.spark.confluent import payload, schema_id

    rows.where(schema_id("value") == 7).select(from_avro(payload("value"), schema))

The wire format is a zero byte, the schema id in four bytes, the payload; Protobuf puts the indexes
of the message's type before the payload. Nothing here calls a schema registry. The functions are
expressions of Spark's own: no Python runs per row, and a value that is not framed gives NULL.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

_FRAME_BYTES = 5
# One varint in hexadecimal: bytes with the highest bit set, then one without.
_VARINT = "(?:[89A-F][0-9A-F])*[0-7][0-9A-F]"
# How many bytes of a payload can be indexes: types nested 20 deep are beyond Protobuf's compilers.
_INDEX_BYTES = 64


def schema_id(value: Column | str) -> Column:
    """The id of the schema a framed value was written with, as an int; else NULL.

    NULL also where the four bytes are no id: more than an int can be, which is not framed either.
    """
    column = _column(value)
    hexadecimal = sf.hex(_bytes(column, 2, 4))
    return sf.when(_is_framed(column), sf.conv(hexadecimal, 16, 10).try_cast("int"))


def payload(value: Column | str) -> Column:
    """What follows the schema id, as `from_avro` takes it; NULL if the value is not framed."""
    column = _column(value)
    return sf.when(_is_framed(column), _bytes_from(column, sf.lit(_FRAME_BYTES + 1)))


def protobuf_payload(value: Column | str) -> Column:
    """What follows the indexes of the message's type, as `from_protobuf` takes it; else NULL.

    A single zero byte stands for the first type of a schema; otherwise their number and each of
    them are zigzag varints.
    """
    column = _column(value)
    indexes = sf.hex(_bytes(column, _FRAME_BYTES + 1, _INDEX_BYTES))
    written = sf.conv(sf.substring(indexes, 1, 2), 16, 10).cast("int")
    # Zigzag: a count of n is written as 2n; it takes one byte.
    count = sf.coalesce(sf.shiftright(written, 1), sf.lit(0))
    pattern = sf.format_string(f"^{_VARINT}(?:{_VARINT}){{%d}}", count)
    size = sf.length(sf.regexp_substr(indexes, pattern)) / 2
    start = (sf.lit(_FRAME_BYTES + 1) + size).cast("int")
    return sf.when(_is_framed(column) & start.isNotNull(), _bytes_from(column, start))


def _column(value: Column | str) -> Column:
    return sf.col(value) if isinstance(value, str) else value


def _is_framed(column: Column) -> Column:
    starts_with_zero = _bytes(column, 1, 1) == sf.lit(b"\x00")
    return starts_with_zero & (sf.length(column) >= _FRAME_BYTES)


def _bytes(column: Column, start: int, count: int) -> Column:
    return sf.substring(column, start, count)


def _bytes_from(column: Column, start: Column) -> Column:
    return sf.substr(column, start, sf.length(column))
