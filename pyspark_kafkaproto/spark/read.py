"""The batch reader: plans on the driver, reads on the executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructType

from pyspark_kafkaproto.client import ReadSettings, ReadTask
from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.spark.columns import DAMAGED
from pyspark_kafkaproto.spark.options import ReadOptions
from pyspark_kafkaproto.spark.planning import plan_tasks
from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.workers import configure_logging, spare_the_collector

if TYPE_CHECKING:
    import pyarrow as pa


class TaskPartition(InputPartition):
    """An input partition: the ranges of one Spark task."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(task)

    @property
    def task(self) -> ReadTask:
        """What to read."""
        task: ReadTask = self.value
        return task


class KafkaReader(DataSourceReader):
    """Reads offset ranges as Arrow record batches.

    Opens nothing before it is used.
    """

    def __init__(self, schema: StructType, options: ReadOptions) -> None:
        self._schema = schema
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(KafkaReader, self._schema, self._options)

    def partitions(self) -> list[TaskPartition]:
        """One input partition per topic-partition, or `maxPartitions` of about equal size."""
        configure_logging()
        say_which_codec()
        with packets_with_errors(), KafkaCluster(self._options.driver) as cluster:
            return [TaskPartition(task) for task in plan_tasks(cluster, self._options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The records of one input partition."""
        return read_partition(partition, self._schema, self._options.client, self._options.settings)


def read_partition(
    partition: InputPartition | None,
    schema: StructType,
    client: ClientConfig,
    settings: ReadSettings,
) -> Iterator[pa.RecordBatch]:
    """The records of one input partition, on an executor."""
    from pyspark_kafkaproto.arrow import schema_for  # noqa: PLC0415 - pyarrow, for tasks alone
    from pyspark_kafkaproto.client import read_batches  # noqa: PLC0415 - as above

    configure_logging()
    spare_the_collector()
    if not isinstance(partition, TaskPartition):
        # What Spark makes of an empty plan; 4.0 and 4.1 make None of it.
        if partition is None or partition.value is None:
            return iter(())
        raise LocalProtocolError(f"not an input partition of this source: {partition!r}")
    names = schema.fieldNames()
    texts = {item.name for item in schema.fields if isinstance(item.dataType, StringType)}
    aside = next((item.name for item in schema.fields if item.dataType == DAMAGED), None)
    columns = schema_for(names, texts & {"key", "value"}, damaged_column=aside)
    return _with_packets(read_batches(partition.task, client, settings, columns))


def _with_packets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same; an error among them says where the last packets before it are."""
    with packets_with_errors():
        yield from batches
