"""Limits into bounds: asks the cluster for what timestamps and groups mean in offsets.

Earliest and Latest are not asked for here: they stay open until a range is read.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from pyspark_kafkaproto.client.committed import check_commits
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.options import Chosen, ReadOptions
from pyspark_kafkaproto.spark.starts import (
    OFFSETS_MISMATCH,
    TIMES_MISMATCH,
    Ago,
    Bound,
    Committed,
    Earliest,
    Limit,
    Relative,
    Specific,
    Timestamp,
    check_named,
)

_Partitions = Collection[TopicPartition]


def resolve_starts(
    cluster: KafkaCluster, options: ReadOptions, partitions: _Partitions
) -> dict[TopicPartition, Bound]:
    """Where each partition starts: an offset, or Earliest, found when it is read.

    Raises:
        ConfigError: offsets or times for other partitions than those that are read; the group is a
            share group, to which nothing is committed; or, if the options make that an error, no
            record is as late as asked for, or the group has committed nothing.
    """
    return resolve_limit(
        cluster,
        options.start,
        partitions,
        no_match=options.no_match,
        group=options.group,
        fallback=options.fallback,
    )


def resolve_ends(
    cluster: KafkaCluster, options: ReadOptions, partitions: _Partitions
) -> dict[TopicPartition, Bound]:
    """Where each partition ends: an offset, or Latest, found when it is read.

    A time that no record reaches is the latest offset of the moment: what is written later may be
    of that time, and is left out. A partition that the group has committed nothing for ends where
    it begins.
    """
    return resolve_limit(
        cluster,
        options.end,
        partitions,
        no_match="latest",
        group=options.group,
        fallback=Earliest(),
    )


def resolve_limit(
    cluster: KafkaCluster,
    at: Chosen,
    partitions: _Partitions,
    *,
    no_match: str,
    group: str | None,
    fallback: Limit | None,
) -> dict[TopicPartition, Bound]:
    """The bound of each partition.

    Args:
        cluster: whom to ask.
        at: the limit, and the option to name in errors.
        partitions: those that are read.
        no_match: for a time later than every record: `error`, or `latest` (the end of the log as
            it is now).
        group: whose committed offsets count.
        fallback: the limit where the group has committed nothing; None for an error.
    """
    match at.limit:
        case Specific(offsets):
            check_named(at.option, offsets, partitions, OFFSETS_MISMATCH)
            return dict(offsets)
        case Timestamp(times):
            return _at_times(cluster, at.option, times, partitions, no_match)
        case Ago(ms):
            now = int(time.time() * 1000)
            return _at_times(cluster, at.option, max(0, now - ms), partitions, no_match)
        case Relative(distance):
            return _relative(cluster, distance, partitions)
        case Committed():
            found: dict[TopicPartition, Bound] = {}
            found.update(cluster.get_consumer_offsets(group or "", partitions))
            if not found and partitions:
                check_commits(cluster, "kafka.group.id", group or "")
            missing = sorted(set(partitions) - set(found))
            if missing and fallback is None:
                raise ConfigError(
                    at.option,
                    "committed",
                    f"group {group!r} has committed nothing for {', '.join(map(str, missing))}; "
                    "the option committedFallback says where to start then",
                )
            if missing and fallback is not None:
                instead = Chosen("committedFallback", fallback)
                found |= resolve_limit(
                    cluster, instead, missing, no_match="latest", group=None, fallback=None
                )
            return found
        case limit:
            return dict.fromkeys(partitions, limit)


def _at_times(
    cluster: KafkaCluster,
    option: str,
    times: int | Mapping[TopicPartition, int],
    partitions: _Partitions,
    no_match: str,
) -> dict[TopicPartition, Bound]:
    if isinstance(times, int):
        times = dict.fromkeys(partitions, times)
    check_named(option, times, partitions, TIMES_MISMATCH)
    found = cluster.get_leader_offsets_at(times)
    late = sorted(partition for partition, offset in found.items() if offset is None)
    if late and no_match == "error":
        raise ConfigError(
            option,
            {str(partition): times[partition] for partition in late},
            "no record has this timestamp (milliseconds since 1970) or a later one; with "
            "startingOffsetsByTimestampStrategy=latest such partitions are read from their end on",
        )
    if late:
        # Before the times, once more: what is written between the two is told by its time.
        ends = cluster.get_latest_leader_offsets(late)
        again = cluster.get_leader_offsets_at({item: times[item] for item in late})
        found |= {item: ends[item] if at is None else at for item, at in again.items()}
    return {item: offset for item, offset in found.items() if offset is not None}


def _relative(
    cluster: KafkaCluster, distance: int, partitions: _Partitions
) -> dict[TopicPartition, Bound]:
    """So many offsets from one end of each log, but never beyond the other one."""
    earliest = cluster.get_earliest_leader_offsets(partitions)
    latest = cluster.get_latest_leader_offsets(partitions)
    if distance < 0:
        return {item: max(earliest[item], latest[item] + distance) for item in partitions}
    return {item: min(latest[item], earliest[item] + distance) for item in partitions}
