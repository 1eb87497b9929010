"""The jars of Spark's own Kafka connector, fetched as Kafka's are; for what compares with it."""

from __future__ import annotations

from pyspark_kafkaproto.devbroker.jars import fetch

# The newest on Maven Central; they run on PySpark 4.2 and 4.3.
_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
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
        (fetch(module, version, group=group, transitive=False), module, version)
        for group, module, version in _JARS
    ]
    return [str(folder / f"{module}-{version}.jar") for folder, module, version in folders]
