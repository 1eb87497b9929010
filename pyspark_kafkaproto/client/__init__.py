"""Records in and out of a cluster: where the control plane meets the data plane.

`ranges` says what to read, `fetch` gets it block by block, `decode` turns blocks into Arrow record
batches, `committed` plans what a group has not seen, `produce` writes such batches; `consumer`
reads as a member of a group (its parts: `group`), and is not imported here: executors do without.
Nothing here knows of Spark.
"""

from pyspark_kafkaproto.client.committed import commit_ranges, committing, plan_ranges
from pyspark_kafkaproto.client.decode import read_batches
from pyspark_kafkaproto.client.fetch import Fetcher
from pyspark_kafkaproto.client.loadtest import Load, LoadTest
from pyspark_kafkaproto.client.plain import ProducerRecord
from pyspark_kafkaproto.client.produce import Producer
from pyspark_kafkaproto.client.queues import Written
from pyspark_kafkaproto.client.ranges import (
    Mode,
    OffsetRange,
    RangeReport,
    ReadSettings,
    ReadTask,
)

__all__ = [
    "Fetcher",
    "Load",
    "LoadTest",
    "Mode",
    "OffsetRange",
    "Producer",
    "ProducerRecord",
    "RangeReport",
    "ReadSettings",
    "ReadTask",
    "Written",
    "commit_ranges",
    "committing",
    "plan_ranges",
    "read_batches",
]
