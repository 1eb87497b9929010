"""A micro-batch's offsets into read tasks, and what is lost between two batches.

Called with the same offsets again, after a restart or in the middle of a batch, it plans the same
ranges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark_kafkaproto.client import ReadTask
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.options import ReadOptions
from pyspark_kafkaproto.spark.planner import make_ranges
from pyspark_kafkaproto.spark.planning import input_partitions, is_gone, make_task
from pyspark_kafkaproto.spark.stream.tail import Offsets, Tail, fail_or_warn

_Offsets = Mapping[TopicPartition, int]


def plan_batch(tail: Tail, options: ReadOptions, start: _Offsets, end: _Offsets) -> list[ReadTask]:
    """What each input partition of the micro-batch [start, end) reads.

    Partitions without a start were added meanwhile: they are read from their first offset, which
    has to be 0. Those without an end were deleted.

    Raises:
        DataLoss: records are gone, and that is to fail the query.
    """
    _check_deleted(options, start, end)
    topology = tail.topology_with(end)
    starts = dict(start) | _added(tail, options, start, end)
    _check_backward(options, starts, end)
    ends = {item: max(offset, starts[item]) for item, offset in end.items()}
    ranges = make_ranges({item: starts[item] for item in ends}, ends)
    there = [item for item in ranges if not is_gone(topology, item.topic_partition)]
    gone = {item.topic_partition for item in ranges} - {item.topic_partition for item in there}
    _report_deleted(options, gone)
    return [make_task(topology, group) for group in input_partitions(tail.cluster, there, options)]


def refuse_losses(options: ReadOptions, at: _Offsets, ends: _Offsets) -> None:
    """Fail, where losses fail a query, before a batch that ends in one is logged.

    A logged batch is planned again at every restart: what was a broker's bad moment would stay in
    the checkpoint.

    Raises:
        DataLoss: partitions are gone, or end before the offset that the stream is at.
    """
    if options.settings.fail_on_data_loss and ends is not at:
        _check_deleted(options, at, ends)
        _check_backward(options, {item: at.get(item, end) for item, end in ends.items()}, ends)


def _check_deleted(options: ReadOptions, start: _Offsets, end: _Offsets) -> None:
    _report_deleted(options, start.keys() - end.keys())


def _report_deleted(options: ReadOptions, partitions: Collection[TopicPartition]) -> None:
    if partitions:
        names = ", ".join(map(str, sorted(partitions)))
        fail_or_warn(
            options,
            "PARTITIONS_DELETED",
            f"Partitions {names} have been deleted, or are not what the query is to read any more: "
            "one that reads something else needs a checkpoint of its own.",
        )


def _added(tail: Tail, options: ReadOptions, start: _Offsets, end: _Offsets) -> Offsets:
    """Where partitions that were added since the last batch start; their end if they are gone."""
    added = sorted(end.keys() - start.keys())
    known = tail.beginnings_of_added(added)
    for item, offset in sorted(known.items()):
        if offset:
            fail_or_warn(
                options,
                "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
                f"Added partition {item} starts from {offset} instead of 0.",
            )
    return {item: known.get(item, end[item]) for item in added}


def _check_backward(options: ReadOptions, start: _Offsets, end: _Offsets) -> None:
    for item in sorted(item for item, offset in end.items() if offset < start[item]):
        fail_or_warn(
            options,
            "PARTITION_OFFSET_CHANGED",
            f"Partition {item} offset was changed from {start[item]} to {end[item]}: it was "
            "deleted and created again, its end was cut off, or kafka.bootstrap.servers names "
            "another cluster.",
        )
