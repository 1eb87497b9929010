"""Reading the same rows with Spark's own connector and with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def load(spark: SparkSession, source: str, servers: str, **options: object) -> DataFrame:
    """A batch read with `source` (`kafka` or `kafkaproto`)."""
    reader = spark.read.format(source).option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        reader = reader.option(name.replace("kafka_", "kafka."), str(value))
    return reader.load()


def rows(frame: DataFrame) -> list[Row]:
    """All rows in the order of topic, partition and offset."""
    return frame.orderBy("topic", "partition", "offset").collect()


def assert_same_rows(spark: SparkSession, servers: str, **options: object) -> list[Row]:
    """Both connectors give the same rows, one by one; gives them."""
    ours = load(spark, "kafkaproto", servers, **options)
    theirs = load(spark, "kafka", servers, **options)
    assert ours.schema == theirs.schema
    expected = rows(theirs)
    assert rows(ours) == expected
    return expected
