"""The source under versions of PySpark that lack what limits streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: here everything has been imported.
WITHOUT_LIMITS = """
import sys
import pyspark.sql.datasource  # whose newer versions import it themselves
sys.modules["pyspark.sql.streaming.datasource"] = None  # as in PySpark 4.0 and 4.1
from pyspark_kafkaproto.spark.source import DefaultSource
from pyspark.sql.types import StringType, StructField, StructType
made = DefaultSource({"kafka.bootstrap.servers": "b-1:9092", "subscribe": "orders"})
schema = StructType([StructField("topic", StringType())])
made.reader(schema)
print(type(made.streamReader(schema)).__name__)
"""


@pytest.mark.slow
def test_older_pyspark_reads_batches_and_streams_without_limits():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIMITS],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "UnlimitedStreamReader\n"


READS_ALONE = """
import sys
from pyspark_kafkaproto.spark import DefaultSource
import pyspark_kafkaproto.spark.stream.limited
found = {name.removeprefix("pyspark_kafkaproto.") for name in sys.modules}
print(*sorted(found & {"client.produce", "client.transactions", "client.loadtest", "capture",
                       "spark.write", "spark.write_options", "cluster.transactions"}))
"""


@pytest.mark.slow
def test_what_reads_does_not_load_what_writes():
    """Each Python process of Spark would pay for it: the one of a stream is new for each query."""
    done = subprocess.run(
        [sys.executable, "-c", READS_ALONE], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "\n"
