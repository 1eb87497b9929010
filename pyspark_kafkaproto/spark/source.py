"""What Spark registers as `kafkaproto`: wiring, and which columns there are."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.spark.columns import checked_schema, default_schema, parse_columns
from pyspark_kafkaproto.spark.options import (
    damaged_column,
    lowered,
    option_value,
    parse_read_options,
)
from pyspark_kafkaproto.spark.read import KafkaReader
from pyspark_kafkaproto.spark.stream.options import parse_stream_options, refuse_limits
from pyspark_kafkaproto.spark.stream.refused import RefusedStream
from pyspark_kafkaproto.spark.workers import spare_the_collector

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

    from pyspark_kafkaproto.spark.stream.reader import KafkaStreamReader

# What streams are limited by came with PySpark 4.2.
_FOR_LIMITS = "pyspark.sql.streaming.datasource"
_NONE_GIVEN = (
    "no option has come. Those of a catalog's table (CREATE TABLE … USING) Spark gives to no "
    "source in Python: "
)
_TO_READ = "CREATE TEMPORARY VIEW keeps them, or say SELECT … FROM t WITH (…)"
_TO_WRITE = 'say INSERT INTO t WITH (…), or writeTo("t").options(…).append()'


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

    @property
    def _given(self) -> dict[str, str]:
        return lowered(self.options)

    def _needed(self, advice: str) -> dict[str, str]:
        """The same of whoever cannot do without any."""
        if not self.options:
            raise ConfigError("kafka.bootstrap.servers", None, _NONE_GIVEN + advice)
        return self._given

    def schema(self) -> StructType:
        """All columns, or those of the option `columns`."""
        spare_the_collector()
        columns = option_value(self._given, "columns")
        include_headers = option_value(self._given, "includeHeaders")
        aside = damaged_column(self._given)
        if columns is None:
            return default_schema(include_headers=include_headers, damaged_column=aside)
        chosen = parse_columns("columns", columns, aside)
        self._check_asked_for("columns", columns, chosen)
        return chosen

    def reader(self, schema: StructType) -> KafkaReader:
        """A batch reader of the columns in `schema`, all options checked."""
        spare_the_collector()
        return KafkaReader(self._checked(schema), parse_read_options(self._needed(_TO_READ)))

    def streamReader(  # noqa: N802 - Spark's name
        self, schema: StructType
    ) -> KafkaStreamReader | RefusedStream:
        """A reader of micro-batches of the columns in `schema`, all options checked.

        One that raises what is wrong, where something is.
        """
        try:
            return self._stream_reader(schema)
        except KafkaProtoError as error:
            return RefusedStream(error)

    def _stream_reader(self, schema: StructType) -> KafkaStreamReader:
        schema, options = self._checked(schema), parse_stream_options(self._needed(_TO_READ))
        if find_spec(_FOR_LIMITS) is None:
            from pyspark_kafkaproto.spark.stream.unlimited import (  # noqa: PLC0415 - one of the two
                UnlimitedStreamReader,
            )

            refuse_limits(self._given)
            return UnlimitedStreamReader(schema, options)
        from pyspark_kafkaproto.spark.stream.limited import (  # noqa: PLC0415 - 4.1 cannot import it
            LimitedStreamReader,
        )

        return LimitedStreamReader(schema, options)

    def _checked(self, schema: StructType) -> StructType:
        columns = option_value(self._given, "columns")
        aside = damaged_column(self._given)
        if columns is not None and parse_columns("columns", columns, aside) != schema:
            raise ConfigError(
                "columns", columns, f".schema(…) says {schema.simpleString()}: give one of them"
            )
        self._check_asked_for("schema", schema.simpleString(), schema)
        return checked_schema(schema, aside)

    def _check_asked_for(self, option: str, shown: str, chosen: StructType) -> None:
        """Refuse columns without those that other options ask for."""
        include_headers = option_value(self._given, "includeHeaders")
        if include_headers and "headers" not in chosen.fieldNames():
            raise ConfigError(
                option, shown, "includeHeaders is true, so headers must be among them"
            )
        aside = damaged_column(self._given)
        if aside is not None and aside not in chosen.fieldNames():
            raise ConfigError(
                option,
                shown,
                f"mode is PERMISSIVE, so {aside!r} must be among them, where damaged batches are "
                "kept (columnNameOfCorruptRecord); to leave them out say mode DROPMALFORMED",
            )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A batch writer of rows of `schema`, everything checked that can be before a row comes."""
        from pyspark_kafkaproto.spark.write import batch_writer  # noqa: PLC0415 - readers do without

        spare_the_collector()
        return batch_writer(schema, self._needed(_TO_WRITE), overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """The same for the micro-batches of a stream; complete mode writes all rows each time."""
        from pyspark_kafkaproto.spark.write import stream_writer  # noqa: PLC0415 - as above

        del overwrite
        return stream_writer(schema, self._needed(_TO_WRITE))
