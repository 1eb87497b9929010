"""Rows as (partition, offset): what a test of positions compares."""

from __future__ import annotations

from pyspark_kafkaproto.client.fetch import Block
from pyspark_kafkaproto.records import Columns, decode

Row = tuple[int, int]


def rows_of(block: Block) -> list[Row]:
    """The rows of a block."""
    decoded = decode(block.records, start=block.start, stop=block.stop, wanted=Columns.OFFSET)
    offsets = memoryview(decoded.offsets).cast("B").cast("q")
    return [(block.progress.range.partition, offset) for offset in offsets]


def rows(partition: int, start: int, stop: int) -> list[Row]:
    """What [start, stop) of a partition should give."""
    return [(partition, offset) for offset in range(start, stop)]
