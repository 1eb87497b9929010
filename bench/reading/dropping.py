"""A Spark sink in Python that throws every row away: what our sink is measured above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class Dropping(DataSource):
    """The format `dropping`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "dropping"

    def writer(self, schema: StructType, overwrite: bool) -> DroppingWriter:
        """A writer of any rows."""
        del schema, overwrite
        return DroppingWriter()


class DroppingWriter(DataSourceArrowWriter):
    """Takes everything, keeps nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Look at each batch and forget it."""
        for _ in iterator:
            pass
        return WriterCommitMessage()
