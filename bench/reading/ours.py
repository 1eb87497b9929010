"""Our own reading without Spark: what an executor does, task by task in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from pyspark_kafkaproto import KafkaCluster, OffsetRange
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import Fetcher, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.net import ClientConfig, Endpoint, connections_for
from pyspark_kafkaproto.records import Columns, decode

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@dataclass(frozen=True)
class Reading:
    """All of a topic, planned: one task per partition, as Spark has it."""

    config: ClientConfig
    tasks: list[ReadTask]

    @classmethod
    def open(cls, properties: Mapping[str, str], topic: str) -> Self:
        """Ask the cluster for the topic's partitions, offsets and leaders."""
        with KafkaCluster(properties) as cluster:
            topology = cluster.describe({topic}, must_exist=True)
            partitions = sorted(cluster.get_partitions({topic}))
            earliest = cluster.get_earliest_leader_offsets(partitions)
            latest = cluster.get_latest_leader_offsets(partitions)
        tasks = [
            ReadTask(
                (OffsetRange(*item, earliest[item], latest[item]),),
                {item: topology.leader(item)},
                {topic: topology.topic(topic).topic_id},
            )
            for item in partitions
        ]
        return cls(ClientConfig.parse(properties), tasks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        connections_for(self.config).close()

    def through(self, endpoint: Endpoint) -> Self:
        """The same reading with `endpoint` in the place of every leader."""
        tasks = [
            replace(
                task,
                leaders={
                    item: leader._replace(endpoint=endpoint)
                    for item, leader in task.leaders.items()
                },
            )
            for task in self.tasks
        ]
        return replace(self, tasks=tasks)

    def batches(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """The task's records, all columns that Spark's own connector has."""
        return read_batches(task, self.config, ReadSettings(), schema_for(COLUMNS))

    def count(self) -> int:
        """Read everything; the number of rows that came."""
        return sum(batch.num_rows for task in self.tasks for batch in self.batches(task))

    def largest_bytes(self) -> dict[str, int]:
        """The sizes of the largest fetched block and of the largest record batch, decompressed."""
        block_bytes = batch_bytes = 0
        for task in self.tasks:
            for block in Fetcher(task, self.config, ReadSettings()).blocks():
                block.finish()
                block_bytes = max(block_bytes, len(block.records))
                batch_bytes = max(batch_bytes, _largest_batch_bytes(block))
        return {"block_bytes": block_bytes, "batch_bytes": batch_bytes}


def _largest_batch_bytes(block: Block) -> int:
    largest = pos = 0
    start = block.start
    while pos < len(block.records) and start < block.stop:
        decoded = decode(
            block.records, pos=pos, start=start, stop=block.stop, wanted=Columns.OFFSET
        )
        if decoded.pos == pos:
            break  # what is left is a batch cut by the block's end
        pos, start = decoded.pos, decoded.next_offset
        largest = max(largest, decoded.max_batch_bytes)
    return largest
