"""pyspark-kafkaproto: a PySpark data source that speaks Kafka's wire protocol itself.

This module is imported by Spark at its first look-up of any Python data source, and by the
command line, which must not pay for Spark. So it imports nothing: every public name is loaded on
first use, and the import can never raise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_kafkaproto.client import OffsetRange as OffsetRange
    from pyspark_kafkaproto.client import Producer as Producer
    from pyspark_kafkaproto.client import ProducerRecord as ProducerRecord
    from pyspark_kafkaproto.client import commit_ranges as commit_ranges
    from pyspark_kafkaproto.client import committing as committing
    from pyspark_kafkaproto.client import plan_ranges as plan_ranges
    from pyspark_kafkaproto.client.consumer import Consumer as Consumer
    from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern as SubscriptionPattern
    from pyspark_kafkaproto.client.share.consumer import ShareConsumer as ShareConsumer
    from pyspark_kafkaproto.client.share.held import Acknowledge as Acknowledge
    from pyspark_kafkaproto.cluster import KafkaCluster as KafkaCluster
    from pyspark_kafkaproto.cluster import TopicPartition as TopicPartition
    from pyspark_kafkaproto.spark import DefaultSource as DefaultSource
    from pyspark_kafkaproto.spark.range_text import ranges_json as ranges_json
    from pyspark_kafkaproto.spark.stream.listener import (
        OffsetCommitListener as OffsetCommitListener,
    )

__version__ = "0.1.0"

# public name -> the module that defines it
_HOMES = {
    "Acknowledge": "pyspark_kafkaproto.client.share.held",
    "Consumer": "pyspark_kafkaproto.client.consumer",
    "DefaultSource": "pyspark_kafkaproto.spark",
    "KafkaCluster": "pyspark_kafkaproto.cluster",
    "OffsetCommitListener": "pyspark_kafkaproto.spark.stream.listener",
    "OffsetRange": "pyspark_kafkaproto.client",
    "Producer": "pyspark_kafkaproto.client",
    "ProducerRecord": "pyspark_kafkaproto.client",
    "ShareConsumer": "pyspark_kafkaproto.client.share.consumer",
    "SubscriptionPattern": "pyspark_kafkaproto.client.group.pattern",
    "TopicPartition": "pyspark_kafkaproto.cluster",
    "commit_ranges": "pyspark_kafkaproto.client",
    "committing": "pyspark_kafkaproto.client",
    "plan_ranges": "pyspark_kafkaproto.client",
    "ranges_json": "pyspark_kafkaproto.spark",
}

__all__ = [
    "Acknowledge",
    "Consumer",
    "DefaultSource",
    "KafkaCluster",
    "OffsetCommitListener",
    "OffsetRange",
    "Producer",
    "ProducerRecord",
    "ShareConsumer",
    "SubscriptionPattern",
    "TopicPartition",
    "__version__",
    "commit_ranges",
    "committing",
    "plan_ranges",
    "ranges_json",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
