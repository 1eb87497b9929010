"""Spark Connect: the source is found and read from a client that has no JVM of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition

pytestmark = pytest.mark.spark

CLIENT = """
import sys
import time
from pyspark.sql import SparkSession
from pyspark_kafkaproto import OffsetCommitListener

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

listener = OffsetCommitListener({"bootstrap.servers": sys.argv[1]}, sys.argv[3])
spark.streams.addListener(listener)
query = (
    spark.readStream.format("kafkaproto")
    .option("kafka.bootstrap.servers", sys.argv[1])
    .option("subscribe", sys.argv[2])
    .option("startingOffsets", "earliest")
    .schema("value string, offset bigint")
    .load()
    .writeStream.format("memory")
    .queryName("streamed")
    .trigger(availableNow=True)
    .start()
)
assert query.awaitTermination(60)
print([tuple(row) for row in spark.table("streamed").orderBy("offset").collect()])
deadline = time.monotonic() + 60
while listener.behind is None and time.monotonic() < deadline:
    time.sleep(0.05)
spark.stop()
"""


def test_a_connect_client_reads_a_topic_and_streams_it(broker, new_topic, new_name, tmp_path):
    topic, group = new_topic(), new_name("group")
    broker.produce(topic, ["a", "b"])
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, broker.bootstrap_servers, topic, group],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["[('a', 0), ('b', 1)]"] * 2
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        read = TopicPartition(topic, 0)
        assert cluster.get_consumer_offsets(group, {read}) == {read: 2}
