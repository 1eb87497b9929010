"""Where the last records of partitions begin, which is not so many offsets before their ends.

Markers of transactions have offsets, too, and so has what was aborted or compacted: of a topic that
is written in transactions of one record each, every other offset is none that is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import pyarrow as pa

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client.following import Offsets
from pyspark_kafkaproto.client.reading.decode import read_batches
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import CorruptRecords


def find_last(
    cluster: KafkaCluster, first: Mapping[TopicPartition, int], ends: Offsets, count: int
) -> Offsets:
    """The offset of the last but `count` record of each partition; `first` where it has fewer.

    The offsets are read back from the ends, in longer and longer parts, until there are enough.
    Where that meets a damaged batch it stays with what it has: who reads will meet it, too.
    """
    if not count:
        return dict(ends)
    starts = dict(first)
    edges, missing, span = dict(ends), dict.fromkeys(ends, count), count
    while True:
        # A part that reaches the first record and has no more offsets than are missing is all in.
        wide = {item for item in missing if edges[item] - first[item] > missing[item]}
        parts = {item: max(first[item], edges[item] - span) for item in wide}
        if not parts:
            return starts
        try:
            found = _offsets_within(cluster, parts, edges)
        except CorruptRecords:
            return starts | {item: max(first[item], edges[item] - missing[item]) for item in wide}
        missing = {item: missing[item] for item in wide}
        for item, begin in parts.items():
            offsets = found[item]
            if len(offsets) >= missing[item]:
                starts[item] = offsets[len(offsets) - missing.pop(item)].as_py()
            else:
                missing[item] -= len(offsets)
                edges[item] = begin
        span *= 2


def _offsets_within(
    cluster: KafkaCluster, starts: Mapping[TopicPartition, int], stops: Offsets
) -> dict[TopicPartition, pa.ChunkedArray]:
    """The offsets of the records from `starts` to `stops`."""
    ranges = tuple(OffsetRange(*item, start, stops[item]) for item, start in starts.items())
    ids = cluster.describe({item.topic for item in starts}, must_exist=True).topic_ids
    task = ReadTask(ranges, cluster.find_leaders(starts), ids)
    schema = schema_for(["topic", "partition", "offset"])
    found: dict[TopicPartition, list[pa.Array]] = {item: [] for item in starts}
    batches = read_batches(task, cluster.config, ReadSettings(), schema)
    with closing(batches):  # type: ignore[type-var]  # a generator has close()
        for batch in batches:  # each of one partition
            topic, partition, offsets = batch.columns
            item = TopicPartition(topic[0].as_py(), partition[0].as_py())
            found[item].append(offsets)
    return {item: pa.chunked_array(parts, pa.int64()) for item, parts in found.items()}
