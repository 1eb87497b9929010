"""The jars of Spark's own Kafka connector, as `kafkaproto compare` takes them."""

from __future__ import annotations

from pyspark_kafkaproto.devbroker.connector import connector_jars

__all__ = ["connector_jars"]
