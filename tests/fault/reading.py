"""Planning and reading rows of (partition, offset, value), in pieces that a fault comes between."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import DataLoss
from pyspark_kafkaproto.net import ClientConfig, Deadline
from tests.fault.conftest import PAUSE_S

SCHEMA = schema_for(["partition", "offset", "value"])
LENIENT = ReadSettings(fail_on_data_loss=False)

Row = tuple[int, int, bytes]


def plan(kafka: KafkaCluster, topic: str) -> ReadTask:
    """One task for all that the topic holds, with its leaders of this moment."""
    partitions = kafka.get_partitions({topic})
    stops = kafka.get_latest_leader_offsets(partitions)
    ranges = tuple(OffsetRange(*item, 0, stops[item]) for item in sorted(partitions))
    topic_id = kafka.describe({topic}).topic(topic).topic_id
    return ReadTask(ranges, kafka.find_leaders(partitions), {topic: topic_id})


class Reading:
    """One read, row by row: `rows` is what came so far."""

    def __init__(
        self, task: ReadTask, config: ClientConfig, settings: ReadSettings | None = None
    ) -> None:
        self.rows: list[Row] = []
        self._batches = read_batches(task, config, settings or ReadSettings(), SCHEMA)

    def go_on(self, count: int | None = None) -> list[Row]:
        """Read until there are `count` rows or more, to the end if None; gives all so far."""
        for rows in self._pieces():
            self.rows += rows
            if count is not None and len(self.rows) >= count:
                break
        return self.rows

    def _pieces(self) -> Iterator[list[Row]]:
        for batch in self._batches:
            yield list(zip(*(batch[name].to_pylist() for name in SCHEMA.names), strict=True))

    @property
    def places(self) -> list[tuple[int, int]]:
        """(partition, offset) of each row, sorted."""
        return sorted(row[:2] for row in self.rows)


def places_of(task: ReadTask) -> list[tuple[int, int]]:
    """(partition, offset) of each row that the task should give where there are no holes."""
    return [
        (item.partition, offset)
        for item in task.ranges
        for offset in range(item.start or 0, item.stop or 0)
    ]


def wait_until_gone(kafka: KafkaCluster, task: ReadTask, config: ClientConfig) -> None:
    """Return once the task's topic, of one partition, is gone from metadata and its leader's logs.

    A busy leader goes on to serve what metadata has forgotten.
    """
    deadline = Deadline.after(60)
    (topic,) = {item.topic for item in task.ranges}
    while kafka.describe({topic}).has(topic) or not _is_lost(task, config):
        deadline.check(f"waiting for {topic} to be gone")
        time.sleep(PAUSE_S)


def _is_lost(task: ReadTask, config: ClientConfig) -> bool:
    try:
        Reading(task, config).go_on(1)
    except DataLoss:
        return True
    return False
