"""Records that tell which of several writers wrote them, at the offsets that they have."""

from __future__ import annotations

import time

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.records import NewRecord
from tests.fault.conftest import PAUSE_S
from tests.spark.writing import produce

_BATCH = 50


def write(trio: DevBroker, topic: str, records: int, mark: bytes) -> None:
    """`records` records of 100 bytes to partition 0, in small batches; values begin with `mark`."""
    value = mark.ljust(100, b".")
    for _ in range(records // _BATCH):
        now_ms = time.time_ns() // 1_000_000
        produce(trio.bootstrap_servers, topic, 0, [NewRecord(value, None, now_ms)] * _BATCH)


def wait_for_end(kafka: KafkaCluster, topic: str, end: int) -> None:
    """Return once partition 0 is acknowledged up to `end`."""
    only = TopicPartition(topic, 0)
    deadline = Deadline.after(120)
    while kafka.get_latest_leader_offsets({only}) != {only: end}:
        deadline.check(f"waiting for {only} to end at {end}")
        time.sleep(PAUSE_S)
