"""The Spark data source `kafkaproto`. Spark finds `DefaultSource` in the package by itself.

`options` reads what the user wrote by the rows of `option_table`, `starts` says where reading
starts and ends, `resolving` asks the cluster what that means, `planner` makes input partitions
(pure) and `planning` tasks. `source`, `read`, `write` and `stream_write` are what Spark calls,
`exactly_once` and `exactly_once_stream` write in transactions, `stream` reads micro-batches. This
room speaks to `client` and `cluster`, never to messages or bytes.
"""

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.spark.range_text import ranges_json
from pyspark_kafkaproto.spark.source import DefaultSource

__all__ = ["DefaultSource", "OffsetRange", "ranges_json"]
