"""What Spark registers as `kafkaproto`: wiring only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pyspark_kafkaproto.spark.columns import checked_schema, default_schema, parse_columns
from pyspark_kafkaproto.spark.options import option_value, parse_read_options
from pyspark_kafkaproto.spark.read import KafkaReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Apache Kafka, read over its own wire protocol.

    ```python
    spark.read.format("kafkaproto").option("kafka.bootstrap.servers", "broker-1:9092").option(
        "subscribe", "orders"
    ).load()
    ```
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafkaproto"

    def schema(self) -> StructType:
        """All columns, or those of the option `columns`."""
        columns = option_value(self._lowered(), "columns")
        if columns is not None:
            return parse_columns("columns", columns)
        return default_schema(include_headers=option_value(self._lowered(), "includeHeaders"))

    def reader(self, schema: StructType) -> KafkaReader:
        """A batch reader of the columns in `schema`, all options checked."""
        return KafkaReader(checked_schema(schema), parse_read_options(self._lowered()))

    def _lowered(self) -> dict[str, str]:
        return {name.lower(): str(value) for name, value in self.options.items()}
