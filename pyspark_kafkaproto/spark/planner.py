"""Ranges into input partitions. Pure: no broker, no Spark; nothing is lost and nothing doubled."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import Earliest, Latest

Bound = int | Earliest | Latest


def plan_ranges(
    starts: Mapping[TopicPartition, Bound], ends: Mapping[TopicPartition, Bound]
) -> list[OffsetRange]:
    """One range per partition, sorted; Earliest and Latest stay open until the range is read.

    Args:
        starts: where each partition starts; no Latest.
        ends: where each partition ends; no Earliest; the same partitions.

    Raises:
        ConfigError: a start lies beyond its end.
    """
    ranges = []
    for partition in sorted(starts):
        start, stop = _offset(starts[partition]), _offset(ends[partition])
        if start is not None and stop is not None and start > stop:
            raise ConfigError(
                "startingOffsets",
                {str(partition): start},
                f"the start lies beyond the end, which is {stop}",
            )
        ranges.append(OffsetRange(*partition, start, stop))
    return [item for item in ranges if item.count != 0]


def group_ranges(
    ranges: Sequence[OffsetRange],
    max_partitions: int | None,
    weights: Mapping[TopicPartition, int],
) -> list[list[OffsetRange]]:
    """Put ranges into at most `max_partitions` groups of about equal weight.

    Without a maximum, and when there are no more ranges than that, each range is a group of its
    own. The heaviest range goes first, always to the lightest group; within a group ranges keep
    their order.
    """
    if max_partitions is None or len(ranges) <= max_partitions:
        return [[item] for item in ranges]
    groups: list[list[int]] = [[] for _ in range(max_partitions)]
    # (weight, number of ranges, group): ranges without weight are spread by their number.
    lightest = [(0, 0, index) for index in range(max_partitions)]
    order = sorted(range(len(ranges)), key=lambda at: -weights[ranges[at].topic_partition])
    for at in order:
        weight, size, index = heapq.heappop(lightest)
        groups[index].append(at)
        added = weights[ranges[at].topic_partition]
        heapq.heappush(lightest, (weight + added, size + 1, index))
    return [[ranges[at] for at in sorted(group)] for group in groups]


def _offset(bound: Bound) -> int | None:
    return bound if isinstance(bound, int) else None
