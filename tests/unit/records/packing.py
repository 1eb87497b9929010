"""Contents of batches, compressed by the native encoder."""

from __future__ import annotations

from array import array

from pyspark_kafkaproto.records import BinaryInput, WriteColumns, _kernel_write
from pyspark_kafkaproto.records.compression import NONE, SNAPPY
from pyspark_kafkaproto.records.layout import HEADER_SIZE, INT32_MAX


def packed(value: bytes) -> tuple[bytes, bytes]:
    """The content of a batch whose one record has `value`, and snappy's stream of it."""
    columns = WriteColumns(1, value=BinaryInput(array("i", [0, len(value)]), value))
    made = []
    for codec in (NONE, SNAPPY):
        builder = _kernel_write.BatchBuilder(codec=codec, limit_bytes=INT32_MAX)
        builder.append(columns, None, 0, 0)
        made.append(builder.finish()[HEADER_SIZE:])
    return made[0], made[1]
