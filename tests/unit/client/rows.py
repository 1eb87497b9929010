"""Rows as (partition, offset): what a test of positions compares."""

from __future__ import annotations

from pyspark_kafkaproto.client import ReadSettings
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import Columns, Damaged, Decoded

NOBODY = {"bootstrap.servers": "nobody:1"}  # a block has all that reading it takes

Row = tuple[int, int]


def rows_of(block: Block) -> list[Row]:
    """The rows of a block."""
    reading = BlockReading(block, ClientConfig.parse(NOBODY), ReadSettings(), Columns.OFFSET)
    found = [offset for decoded in reading.pieces() for offset in _offsets(decoded)]
    return [(block.progress.range.partition, offset) for offset in found]


def _offsets(decoded: Decoded | Damaged) -> memoryview:
    assert isinstance(decoded, Decoded)
    return memoryview(decoded.offsets).cast("B").cast("q")


def rows(partition: int, start: int, stop: int) -> list[Row]:
    """What [start, stop) of a partition should give."""
    return [(partition, offset) for offset in range(start, stop)]
