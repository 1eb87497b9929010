"""The Spark data source `kafkaproto`. Spark finds `DefaultSource` in the package by itself.

`options` reads what the user wrote, `starts` says where reading starts and ends, `planner` makes
input partitions (pure), `source` and `read` are what Spark calls. This room speaks to `client` and
`cluster`, never to messages or bytes.
"""

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.spark.range_text import ranges_json
from pyspark_kafkaproto.spark.source import DefaultSource

__all__ = ["DefaultSource", "OffsetRange", "ranges_json"]
