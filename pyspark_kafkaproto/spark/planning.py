"""The driver's part of a batch read: asks the cluster what the pure planner needs, makes tasks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark_kafkaproto.client import OffsetRange, ReadTask
from pyspark_kafkaproto.cluster import KafkaCluster, Leader, TopicPartition, Topology
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DataLoss
from pyspark_kafkaproto.spark.options import ReadOptions
from pyspark_kafkaproto.spark.planner import group_ranges, plan_ranges
from pyspark_kafkaproto.spark.starts import limit_of

_log = logging.getLogger(__name__)


def plan_tasks(cluster: KafkaCluster, options: ReadOptions) -> list[ReadTask]:
    """What each input partition reads.

    Open bounds stay open (Spark plans once per `load()`, its own connector at each action), so a
    read of everything costs one Metadata request. Given offsets are checked against the log first.

    Raises:
        ConfigError: offsets that name other partitions, lie beyond the end, or end before they
            start.
        DataLoss: a start that is gone already, where that is to fail the query.
    """
    topology = _describe(cluster, options)
    partitions = _select(topology, options)
    ranges = plan_ranges(
        limit_of("startingOffsets", options.start, partitions),
        limit_of("endingOffsets", options.end, partitions),
    )
    ranges = _inside_the_log(cluster, ranges, fail=options.settings.fail_on_data_loss)
    most = options.max_partitions
    weights = _sizes(cluster, ranges) if most is not None and most < len(ranges) else {}
    return [_task(topology, group) for group in group_ranges(ranges, most, weights)]


def _describe(cluster: KafkaCluster, options: ReadOptions) -> Topology:
    if options.subscribe_pattern is not None:
        return cluster.describe()
    if options.subscribe is not None:
        return cluster.describe(set(options.subscribe), must_exist=True)
    topics = {partition.topic for partition in options.assign or ()}
    return cluster.describe(topics, must_exist=True)


def _select(topology: Topology, options: ReadOptions) -> list[TopicPartition]:
    """The partitions that the options mean; never an internal topic by pattern."""
    if options.assign is not None:
        for partition in options.assign:
            topology.partition(partition)
        return list(options.assign)
    names: Sequence[str] = options.subscribe or ()
    pattern = options.subscribe_pattern
    if pattern is not None:
        names = [
            topic.name
            for topic in topology.topics.values()
            if pattern.search(topic.name) and not topic.is_internal and not topic.error_code
        ]
        if not names:
            _log.warning("subscribePattern %r matches no topic: nothing is read", pattern.pattern)
    return [
        TopicPartition(name, number) for name in names for number in topology.topic(name).partitions
    ]


@dataclass(frozen=True, slots=True)
class _Log:
    """What a partition holds: offsets [earliest, latest)."""

    earliest: int
    latest: int


def _logs(cluster: KafkaCluster, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, _Log]:
    partitions = {item.topic_partition for item in ranges}
    earliest = cluster.get_earliest_leader_offsets(partitions)
    latest = cluster.get_latest_leader_offsets(partitions)
    return {item: _Log(earliest[item], latest[item]) for item in partitions}


def _inside_the_log(
    cluster: KafkaCluster, ranges: Sequence[OffsetRange], *, fail: bool
) -> list[OffsetRange]:
    """`ranges`, those with given offsets checked against what is there, or cut to it."""
    given = [item for item in ranges if item.start is not None or item.stop is not None]
    logs = _logs(cluster, given) if given else {}
    checked = []
    for item in ranges:
        log = logs.get(item.topic_partition)
        if log is not None and fail:
            _check(item, log)
        checked.append(item if log is None or fail else _cut(item, log))
    return [item for item in checked if item.count != 0]


def _check(item: OffsetRange, log: _Log) -> None:
    for option, offset in (("startingOffsets", item.start), ("endingOffsets", item.stop)):
        if offset is not None and offset > log.latest:
            raise ConfigError(
                option,
                {str(item.topic_partition): offset},
                f"the partition holds the offsets {log.earliest} to {log.latest}; give an offset "
                f"up to {log.latest}, or set failOnDataLoss to false to read what is there",
            )
    if item.start is not None and item.start < log.earliest:
        stop = log.latest if item.stop is None else item.stop
        raise DataLoss(
            "COULD_NOT_READ_OFFSET_RANGE",
            f"Could not read records in offset [{item.start}, {stop}) for topic partition "
            f"{item.topic_partition}: it holds the offsets {log.earliest} to {log.latest} now.",
        )


def _cut(item: OffsetRange, log: _Log) -> OffsetRange:
    """`item` without what is not there; as it is where all of it is."""
    start = None if item.start is None else max(item.start, log.earliest)
    stop = None if item.stop is None else min(max(item.stop, log.earliest), log.latest)
    if start is not None and start > log.latest:
        stop = start  # nothing: what is written later lies below what was asked for, too
    cut = replace(item, start=start, stop=stop)
    if cut != item:
        _log.warning("%s: only %s is there; failOnDataLoss is false, so that is read", item, cut)
    return cut


def _sizes(cluster: KafkaCluster, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, int]:
    """How many offsets each range spans, open bounds taken as they are now."""
    opened = [item for item in ranges if item.count is None]
    logs = _logs(cluster, opened) if opened else {}
    sizes = {}
    for item in ranges:
        log = logs.get(item.topic_partition, _Log(0, 0))
        start = log.earliest if item.start is None else item.start
        stop = log.latest if item.stop is None else item.stop
        sizes[item.topic_partition] = max(0, stop - start)
    return sizes


def _task(topology: Topology, ranges: Sequence[OffsetRange]) -> ReadTask:
    leaders: dict[TopicPartition, Leader] = {}
    for item in ranges:
        try:
            leaders[item.topic_partition] = topology.leader(item.topic_partition)
        except BrokerError as error:
            # An election goes on: the reader looks the leader up itself, and waits for it.
            _log.info("planned without a leader: %s", error)
    names = {item.topic for item in ranges}
    return ReadTask(tuple(ranges), leaders, {name: topology.topic(name).topic_id for name in names})
