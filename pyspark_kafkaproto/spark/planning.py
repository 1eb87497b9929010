"""The driver's part of a batch read: asks the cluster what the pure planner needs, makes tasks."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark_kafkaproto.client import OffsetRange, ReadTask
from pyspark_kafkaproto.cluster import KafkaCluster, Leader, Topic, TopicPartition, Topology
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DataLoss
from pyspark_kafkaproto.spark.options import ReadOptions
from pyspark_kafkaproto.spark.planner import (
    check_order,
    group_ranges,
    make_ranges,
    split_ranges,
    split_within,
)
from pyspark_kafkaproto.spark.resolving import resolve_ends, resolve_starts
from pyspark_kafkaproto.spark.starts import (
    ENDS_MISMATCH,
    Committed,
    Earliest,
    Latest,
    Specific,
    Timestamp,
    check_named,
)

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# Spark's names for a start beyond its end: as given, and as found out.
UNRESOLVED = "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
RESOLVED = "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
_NOT_READ = "COULD_NOT_READ_OFFSET_RANGE"
_SPARKS_OWN = (Earliest, Latest, Specific, Timestamp)


def plan_tasks(cluster: KafkaCluster, options: ReadOptions) -> list[ReadTask]:
    """What each input partition reads.

    Open bounds stay open (Spark plans once per `load()`, its own connector at each action), so a
    read of everything costs one Metadata request. Given offsets are checked against the log first.

    Raises:
        ConfigError: offsets that name other partitions, lie beyond the end, or end before they
            start.
        DataLoss: a start that is gone already, where that is to fail the query.
    """
    if options.assign == () or options.ranges == ():
        _log.warning("assign and offsetRanges name no partition: nothing is read")
    topology, ranges = _inside_the_log(cluster, options)
    return [make_task(topology, group) for group in input_partitions(cluster, ranges, options)]


def plan_closed_ranges(cluster: KafkaCluster, options: ReadOptions) -> list[OffsetRange]:
    """What the options mean at this moment, in offsets; see `plan_tasks` for errors."""
    _, ranges = _inside_the_log(cluster, options)
    spans = _spans(cluster, ranges)
    return [
        replace(item, start=start, stop=stop)
        for item, (start, stop) in zip(ranges, spans, strict=True)
    ]


def _ranges(cluster: KafkaCluster, topology: Topology, options: ReadOptions) -> list[OffsetRange]:
    if options.ranges is not None:
        for item in options.ranges:
            topology.partition(item.topic_partition)
        return [item for item in options.ranges if item.count != 0]
    partitions = select_partitions(topology, options)
    _check_given(options)
    starts = resolve_starts(cluster, options, partitions)
    ends = resolve_ends(cluster, options, partitions)
    # What users write as numbers is meant so; a start found out to lie behind its end, as after a
    # `committed` that is newer than `-10m`, has nothing to read.
    if isinstance(options.start.limit, _SPARKS_OWN) and isinstance(options.end.limit, _SPARKS_OWN):
        check_order(options.start.option, starts, ends, RESOLVED)
    return make_ranges(starts, ends)


def _check_given(options: ReadOptions) -> None:
    """Refuse a start beyond its end that shows without asking."""
    match options.start.limit, options.end.limit:
        case (Specific(first), Specific(last)) | (
            Timestamp(dict() as first),
            Timestamp(dict() as last),
        ):
            check_named(options.end.option, last, first, ENDS_MISMATCH)
            check_order(options.start.option, first, last, UNRESOLVED)
        case _:
            pass


def describe_selection(
    cluster: KafkaCluster, options: ReadOptions, *, must_exist: bool = True
) -> Topology:
    """The topics that the options mean, with their partitions.

    Raises:
        BrokerError: with `must_exist`, a topic that is named is not there or may not be seen.
    """
    if options.subscribe_pattern is not None:
        return cluster.describe()
    if options.subscribe is not None:
        return cluster.describe(set(options.subscribe), must_exist=must_exist)
    topics = {item.topic for item in options.assign or options.ranges or ()}
    return cluster.describe(topics, must_exist=must_exist)


def matches(pattern: re.Pattern[str], topic: Topic) -> bool:
    """Whether `subscribePattern` means a topic, of all that the cluster has."""
    found = pattern.search(topic.name)
    return bool(found) and not topic.is_internal and not topic.error_code


def select_partitions(
    topology: Topology, options: ReadOptions, *, must_exist: bool = True
) -> list[TopicPartition]:
    """The partitions that the options mean; never an internal topic by pattern.

    Args:
        topology: from `describe_selection`.
        options: what was selected.
        must_exist: whether a topic or partition that is named has to be there; else it is left out.

    Raises:
        BrokerError: it is not there; or, whatever `must_exist` says, it may not be seen.
    """
    if options.assign is not None:
        every = (item for item in options.assign if must_exist or not is_gone(topology, item))
        return [item for item in every if topology.partition(item)]
    names: Sequence[str] = options.subscribe or ()
    pattern = options.subscribe_pattern
    if pattern is not None:
        names = [topic.name for topic in topology.topics.values() if matches(pattern, topic)]
        if not names and must_exist:
            _log.warning("subscribePattern %r matches no topic: nothing is read", pattern.pattern)
    return [
        TopicPartition(name, number)
        for name in names
        if must_exist or topology.has(name)
        for number in topology.topic(name).partitions
    ]


def while_topics_go(cluster: KafkaCluster, options: ReadOptions, ask: Callable[[], _T]) -> _T:
    """What `ask` gives, which looks up topics first; asked again where one is deleted meanwhile.

    Raises:
        BrokerError: somebody has named the topic; or brokers that list it, by pattern, do not know
            it each time.
    """
    if options.subscribe_pattern is None:
        return ask()
    return cluster.doubting(UNKNOWN_TOPIC_OR_PARTITION, ask)


def is_gone(topology: Topology, item: TopicPartition) -> bool:
    """Whether there is no such topic, or no such partition of it."""
    if not topology.has(item.topic):
        return True
    return item.partition not in topology.topic(item.topic).partitions


@dataclass(frozen=True, slots=True)
class _Log:
    """What a partition holds: offsets [earliest, latest)."""

    earliest: int
    latest: int


_Plan = tuple[Topology, list[OffsetRange], dict[TopicPartition, _Log]]


def _logs(cluster: KafkaCluster, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, _Log]:
    partitions = {item.topic_partition for item in ranges}
    earliest = cluster.get_earliest_leader_offsets(partitions)
    latest = cluster.get_latest_leader_offsets(partitions)
    return {item: _Log(earliest[item], latest[item]) for item in partitions}


def _inside_the_log(
    cluster: KafkaCluster, options: ReadOptions
) -> tuple[Topology, list[OffsetRange]]:
    """What is read; given offsets are checked against what is there, or cut to it."""
    fail = options.settings.fail_on_data_loss
    topology, ranges, logs = _with_logs(cluster, options)
    _refuse_held_back(cluster, ranges, logs, options)
    checked = []
    for item in ranges:
        log = logs.get(item.topic_partition)
        if log is not None and fail:
            _check(item, log, options)
        checked.append(item if log is None or fail else _cut(item, log))
    return topology, [item for item in checked if item.count != 0]


def _with_logs(cluster: KafkaCluster, options: ReadOptions) -> _Plan:
    """What the options mean, and what the partitions hold where offsets were given.

    Offsets beyond the end are looked at again through other brokers.
    """

    def look() -> _Plan:
        topology = describe_selection(cluster, options)
        ranges = _ranges(cluster, topology, options)
        given = [item for item in ranges if item.start is not None or item.stop is not None]
        return topology, ranges, _logs(cluster, given) if given else {}

    def are_there(found: _Plan) -> bool:
        _, ranges, logs = found
        return all(
            max(item.start or 0, item.stop or 0) <= logs[item.topic_partition].latest
            for item in ranges
            if item.topic_partition in logs
        )

    return cluster.believed(lambda: while_topics_go(cluster, options, look), are_there)


def _refuse_held_back(
    cluster: KafkaCluster,
    ranges: Sequence[OffsetRange],
    logs: Mapping[TopicPartition, _Log],
    options: ReadOptions,
) -> None:
    """Refuse bounds behind an open transaction: its records are there, and may be committed yet.

    That is no loss, so failOnDataLoss does not bear it either: a read that ends before them would
    pass them over for good. Only a start without an end has nothing to miss.
    """
    if not options.driver.is_read_committed:
        return
    beyond = [
        (item.topic_partition, option, offset, condition)
        for item in ranges
        for option, offset, condition in (
            (options.end_option, item.stop, ""),
            (options.start_option, item.start, RESOLVED),
        )
        if offset is not None and offset > logs[item.topic_partition].latest
        if item.stop is not None or options.settings.fail_on_data_loss
    ]
    if not beyond:
        return
    # In this order: what is written between the two questions is not taken for held back.
    ends = cluster.get_high_watermarks({at for at, *_ in beyond})
    stables = cluster.get_latest_leader_offsets(ends.keys())
    for partition, option, offset, condition in beyond:
        if (stable := stables[partition]) < offset <= ends[partition]:
            raise ConfigError(
                option,
                {str(partition): offset},
                f"a transaction is open since offset {stable}, and read_committed waits for its "
                "end (`kafkaproto transactions list` shows whose it is): try again once it has "
                f"ended, or give an offset up to {stable}",
                condition,
            )


def _check(item: OffsetRange, log: _Log, options: ReadOptions) -> None:
    for option, limit, offset, condition in (
        (options.start_option, options.start.limit, item.start, RESOLVED),
        (options.end_option, options.end.limit, item.stop, f"KAFKA_DATA_LOSS.{_NOT_READ}"),
    ):
        if offset is not None and offset > log.latest:
            said = f"committed by {options.group!r}; " if isinstance(limit, Committed) else ""
            raise ConfigError(
                option,
                {str(item.topic_partition): offset},
                f"{said}the partition holds the offsets {log.earliest} to {log.latest}; give one "
                f"up to {log.latest}, or set failOnDataLoss to false to read what is there",
                condition,
            )
    if item.start is not None and item.start < log.earliest:
        stop = log.latest if item.stop is None else item.stop
        raise _gone(f"in offset [{item.start}, {stop})", item, log)
    if _ends_before(item, log):
        raise _gone(f"up to offset {item.stop}", item, log)


def _ends_before(item: OffsetRange, log: _Log) -> bool:
    """Whether it starts wherever the log does, and is to end, by number, before that."""
    return item.start is None and item.stop is not None and item.stop < log.earliest


def _gone(what: str, item: OffsetRange, log: _Log) -> DataLoss:
    return DataLoss(
        _NOT_READ,
        f"Could not read records {what} for topic partition {item.topic_partition}: "
        f"it holds the offsets {log.earliest} to {log.latest} now.",
    )


def _cut(item: OffsetRange, log: _Log) -> OffsetRange:
    """`item` without what is not there; as it is where all of it is."""
    start = None if item.start is None else max(item.start, log.earliest)
    stop = None if item.stop is None else min(max(item.stop, log.earliest), log.latest)
    if start is not None and start > log.latest:
        stop = start  # nothing: what is written later lies below what was asked for, too
    if _ends_before(item, log):
        start = stop  # nothing: all that is there lies behind what was asked for
    cut = replace(item, start=start, stop=stop)
    if cut != item:
        _log.warning("%s: only %s is there; failOnDataLoss is false, so that is read", item, cut)
    return cut


def input_partitions(
    cluster: KafkaCluster, ranges: list[OffsetRange], options: ReadOptions
) -> list[list[OffsetRange]]:
    """The ranges of each input partition; sizes are asked for only where they matter."""
    least, most, records = options.min_partitions, options.max_partitions, options.max_records
    if most is not None and len(ranges) > most:
        spans = _spans(cluster, ranges)
        return group_ranges(ranges, most, [max(0, stop - start) for start, stop in spans])
    if least is not None and most is not None and least > len(ranges):
        ranges = split_within(ranges, _spans(cluster, ranges), least, most)
    elif records is not None or (least is not None and least > len(ranges)):
        ranges = split_ranges(
            ranges, _spans(cluster, ranges), max_records=records, min_partitions=least
        )
    return [[item] for item in ranges]


def _spans(cluster: KafkaCluster, ranges: Sequence[OffsetRange]) -> list[tuple[int, int]]:
    """Start and stop of each range, open bounds taken as they are now."""
    opened = [item for item in ranges if item.count is None]
    logs = _logs(cluster, opened) if opened else {}
    spans = []
    for item in ranges:
        log = logs.get(item.topic_partition, _Log(0, 0))
        start = log.earliest if item.start is None else item.start
        stop = log.latest if item.stop is None else item.stop
        spans.append((start, max(start, stop)))
    return spans


def make_task(topology: Topology, ranges: Sequence[OffsetRange]) -> ReadTask:
    """What one reader reads, with the leaders that are known."""
    leaders: dict[TopicPartition, Leader] = {}
    for item in ranges:
        try:
            leaders[item.topic_partition] = topology.leader(item.topic_partition)
        except BrokerError as error:
            # An election goes on: the reader looks the leader up itself, and waits for it.
            _log.info("planned without a leader: %s", error)
    names = {item.topic for item in ranges}
    return ReadTask(tuple(ranges), leaders, {name: topology.topic(name).topic_id for name in names})
