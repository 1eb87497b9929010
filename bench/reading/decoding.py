"""Our decoding alone: one block of a topic, in memory already, made into Arrow again and again.

Beside the bare socket it tells where a reader's time goes: one thread has both to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pyspark_kafkaproto import OffsetRange
from pyspark_kafkaproto.arrow import schema_for, to_record_batches, wanted_columns
from pyspark_kafkaproto.client import Fetcher, ReadSettings
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.net import ClientConfig
from reading.ours import COLUMNS, Reading


@dataclass(frozen=True)
class Decoding:
    """The largest block that the first task of a reading fetches; `range` is what is in it."""

    config: ClientConfig
    range: OffsetRange
    records: bytes

    @classmethod
    def of(cls, reading: Reading) -> Self:
        """Fetch it."""
        task = reading.tasks[0]
        whole = task.ranges[0]
        found = cls(reading.config, whole, b"")
        for block in Fetcher(task, reading.config, ReadSettings()).blocks():
            block.finish()
            if len(block.records) > len(found.records):
                own = OffsetRange(*whole.topic_partition, block.start, block.end)
                found = cls(reading.config, own, bytes(block.records))
        return found

    def count(self, records: int) -> int:
        """Decode it until so many rows have come; how many there were."""
        rows = 0
        while rows < records:
            rows += self._once()
        return rows

    def _once(self) -> int:
        start, stop = self.range.start or 0, self.range.stop or 0
        block = Block(RangeProgress(self.range, start, start, stop), memoryview(self.records), ())
        block.ends(stop)
        schema = schema_for(COLUMNS)
        reading = BlockReading(block, self.config, ReadSettings(), wanted_columns(schema))
        return sum(
            batch.num_rows
            for decoded in reading.pieces()
            for batch in to_record_batches(decoded, *self.range.topic_partition, schema)
        )
