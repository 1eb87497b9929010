"""A stream that is not to be: its first question is answered with the error that says why.

Spark's own process for a source (4.3) has no reader to stop where `streamReader` raises, and
ends with an error about that: who started the query would read of a local variable, and look for
the reason above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_kafkaproto.errors import KafkaProtoError

if TYPE_CHECKING:
    import pyarrow as pa


class RefusedStream(DataSourceStreamReader):
    """Raises `error` whatever it is asked."""

    def __init__(self, error: KafkaProtoError) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:  # noqa: N802 - Spark's name
        """The first question of a new query."""
        raise self._error

    def latestOffset(self) -> NoReturn:  # type: ignore[override]  # noqa: N802 - Spark's name
        """The first question of one that goes on."""
        raise self._error

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """The same, with a batch to be repeated."""
        del start, end
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Nobody comes so far."""
        del partition
        raise self._error
