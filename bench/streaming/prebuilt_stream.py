"""The floor of a micro-batch: a Python source that yields one batch it has already, and no more.

It answers at once where a batch ends and opens no connection. What it takes is what Spark takes for
a micro-batch of so many rows from Python: no source can be faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from reading.prebuilt import SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa

Offset = dict[str, int]


class PrebuiltStream(DataSource):
    """Options: `shape`, a folder that `reading.shape` wrote, `rows` a batch, `batches`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "prebuilt-stream"

    def schema(self) -> str:
        """The columns that Spark's own connector has."""
        return SCHEMA

    def streamReader(self, schema: Any) -> PrebuiltStreamReader:  # noqa: N802 - Spark's name
        """A reader of these columns, which are all there are."""
        del schema
        get = self.options.get
        return PrebuiltStreamReader(Path(get("shape")), int(get("rows")), int(get("batches")))


class PrebuiltStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One input partition a batch; offsets are numbers of batches."""

    def __init__(self, folder: Path, rows: int, batches: int) -> None:
        self._folder = folder
        self._rows = rows
        self._batches = batches

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The number of batches is known."""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Nothing is read."""
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """One batch a trigger."""
        return ReadMaxRows(self._rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """One batch more, until there are no more."""
        del limit
        return {"batch": min(self._batches, start["batch"] + 1)}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One."""
        return [InputPartition((start, end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The first rows of the sample."""
        import pyarrow as pa

        del partition
        with (self._folder / "sample.arrow").open("rb") as file:
            yield pa.ipc.open_stream(file).read_next_batch().slice(0, self._rows)
