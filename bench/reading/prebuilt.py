"""The engine's ceiling: a Python data source that has its record batches before it is asked.

It yields one real batch of ours again and again, cut to the rows per batch that our reading of the
same topic gave. What it takes is what Spark takes for rows from Python: no reader can be faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)


class Prebuilt(DataSource):
    """Options: `shape`, a folder that `reading.shape` wrote, and `batches`, at most so many."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "prebuilt"

    def schema(self) -> str:
        """The columns that Spark's own connector has."""
        return SCHEMA

    def reader(self, schema: Any) -> PrebuiltReader:
        """A reader of these columns, which are all there are."""
        del schema
        return PrebuiltReader(Path(self.options["shape"]), self.options.get("batches"))


class PrebuiltReader(DataSourceReader):
    """One input partition per topic-partition of the topic it stands for."""

    def __init__(self, folder: Path, batches: str | None) -> None:
        self._folder = folder
        self._batches = None if batches is None else int(batches)

    def partitions(self) -> list[InputPartition]:
        """Each with the rows of its batches."""
        rows = json.loads((self._folder / "rows.json").read_text())
        return [InputPartition(counts[: self._batches]) for counts in rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The sample, cut to each batch's rows: no bytes are copied for that."""
        import pyarrow as pa

        with (self._folder / "sample.arrow").open("rb") as file:
            sample = pa.ipc.open_stream(file).read_next_batch()
        for count in partition.value:
            yield sample if count == sample.num_rows else sample.slice(0, count)
