"""Records in and out of a cluster: where the control plane meets the data plane.

`ranges` says what to read, `fetch` gets it block by block, `decode` turns blocks into Arrow record
batches, `committed` plans what a group has not seen. Nothing here knows of Spark.
"""

from pyspark_kafkaproto.client.committed import commit_ranges, committing, plan_ranges
from pyspark_kafkaproto.client.decode import read_batches
from pyspark_kafkaproto.client.fetch import Fetcher
from pyspark_kafkaproto.client.ranges import (
    Mode,
    OffsetRange,
    RangeReport,
    ReadSettings,
    ReadTask,
)

__all__ = [
    "Fetcher",
    "Mode",
    "OffsetRange",
    "RangeReport",
    "ReadSettings",
    "ReadTask",
    "commit_ranges",
    "committing",
    "plan_ranges",
    "read_batches",
]
