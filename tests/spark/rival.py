"""Reading the same rows with Spark's own connector and with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

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


def condition_of(error: BaseException) -> str:
    """The name of Spark's condition behind an error of the JVM; empty if there is none.

    Only where PySpark knows the exception's class does its Python side tell the condition.
    """
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None:
        try:
            condition = cause.getCondition()
        except (Py4JError, TypeError):  # not one of Spark's exceptions
            condition = None
        if condition:
            return str(condition)
        cause = cause.getCause()
    return ""
