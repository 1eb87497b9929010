"""The Spark data source `kafkaproto`. Spark finds `DefaultSource` in the package by itself.

`options` and `write_options` read what the user wrote by the rows of `option_table`, `columns` the
schema, `starts` where reading starts and ends, `range_text` offset ranges; `resolving` asks the
cluster what that means, `planner` makes input partitions (pure) and `planning` tasks. `source`,
`read`, `write` and `stream_write` are what Spark calls, `stream` reads micro-batches; `write_task`
is what tasks do for every writer, `exactly_once` and `exactly_once_stream` have them do it in
transactions. `shipping` pickles readers and writers, `workers` prepares the processes that they
come to. For users beside the source: `comparing`, `confluent`, `diagnosis`. This room speaks to
`client` and `cluster`, never to messages or bytes.
"""

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.spark.range_text import ranges_json
from pyspark_kafkaproto.spark.source import DefaultSource

__all__ = ["DefaultSource", "OffsetRange", "ranges_json"]
