"""The writer of a stream's micro-batches: as `write`, for Spark 4.1 and later.

Spark makes a new writer for each micro-batch, and another one for its commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.workers import configure_logging
from pyspark_kafkaproto.spark.write_options import WriteOptions
from pyspark_kafkaproto.spark.write_task import TaskReport, left_behind, summary, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one micro-batch."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(KafkaStreamWriter, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one task's rows; returns when all of them are acknowledged."""
        return write_rows(self._options, iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """All tasks of the micro-batch have written."""
        configure_logging()
        _log.info("batch %d: wrote %s", batchId, summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """A task failed; what was written stays in the topic."""
        configure_logging()
        _log.warning("batch %d failed; %s", batchId, left_behind(messages))
