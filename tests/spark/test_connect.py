"""Spark Connect: the source is found and read from a client that has no JVM of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

CLIENT = """
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
frame = (
    spark.read.format("kafkaproto")
    .option("kafka.bootstrap.servers", sys.argv[1])
    .option("subscribe", sys.argv[2])
    .schema("value string, offset bigint")
    .load()
)
print([tuple(row) for row in frame.orderBy("offset").collect()])
spark.stop()
"""


def test_a_connect_client_reads_a_topic(broker, new_topic, tmp_path):
    topic = new_topic()
    broker.produce(topic, ["a", "b"])
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, broker.bootstrap_servers, topic],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[('a', 0), ('b', 1)]"
