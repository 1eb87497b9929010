"""The jars of Spark's own Kafka connector, fetched as Kafka's are; for what compares with it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pyspark_kafkaproto.devbroker.jars import fetch

# The connector uses what is inside Spark: one for another version breaks in its tasks.
_CONNECTORS = {"4.0": "4.0.0", "4.1": "4.1.0"}
_NEWEST = "4.2.0"  # on Maven Central; it runs on PySpark 4.2 and 4.3
_JARS = (
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)


def connector_jars() -> list[str]:
    """Their paths.

    Raises:
        DevBrokerFailed: they could not be fetched; the text has Ivy's reason.
    """
    folders = [
        (fetch(module, number, group=group, transitive=False), module, number)
        for group, module, number in (_connector(), *_JARS)
    ]
    return [str(folder / f"{module}-{number}.jar") for folder, module, number in folders]


def _connector() -> tuple[str, str, str]:
    """The connector for the PySpark that is installed."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:  # one that came with a cluster, not by pip
        spark = ""
    chosen = _CONNECTORS.get(".".join(spark.split(".")[:2]), _NEWEST)
    return ("org.apache.spark", "spark-sql-kafka-0-10_2.13", chosen)
