"""Ranges into input partitions. Pure: no broker, no Spark; nothing is lost and nothing doubled.

How ranges are split is Spark's own range calculator in meaning: first by `maxRecordsPerPartition`,
then, while there are fewer than `minPartitions`, in proportion to their sizes.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import Bound, Earliest

# More than Spark's scheduler bears, and no more than a driver's memory does.
_MOST_PARTITIONS = 1_000_000


def make_ranges(
    starts: Mapping[TopicPartition, Bound], ends: Mapping[TopicPartition, Bound]
) -> list[OffsetRange]:
    """One range per partition, sorted; Earliest and Latest stay open until the range is read.

    Args:
        starts: where each partition starts; no Latest.
        ends: where each partition ends; the same partitions. One that ends at Earliest, or before
            it starts, is left out.
    """
    ranges = [
        OffsetRange(*partition, _offset(starts[partition]), _offset(ends[partition]))
        for partition in sorted(starts)
        if not isinstance(ends[partition], Earliest)
    ]
    return [item for item in ranges if item.count != 0]


def check_order(
    option: str,
    starts: Mapping[TopicPartition, Bound],
    ends: Mapping[TopicPartition, Bound],
    condition: str,
) -> None:
    """Refuse a start beyond its end.

    Raises:
        ConfigError: with Spark's name for it, `condition`.
    """
    for partition in sorted(starts.keys() & ends.keys()):
        start, end = _offset(starts[partition]), _offset(ends[partition])
        if start is not None and end is not None and start > end:
            raise ConfigError(
                option,
                {str(partition): start},
                f"the start lies beyond the end, which is {end}",
                condition,
            )


def split_ranges(
    ranges: Sequence[OffsetRange],
    spans: Sequence[tuple[int, int]],
    *,
    max_records: int | None,
    min_partitions: int | None,
) -> list[OffsetRange]:
    """Cut ranges into pieces; open bounds stay open in the first and the last piece.

    Args:
        ranges: what is read.
        spans: start and stop of each, as they are now.
        max_records: pieces span no more offsets than this.
        min_partitions: about so many pieces at least; proportional rounding may miss it a little.

    Raises:
        ConfigError: more than a million pieces.
    """
    sizes = [max(0, stop - start) for start, stop in spans]
    counts = [1] * len(ranges)
    if max_records is not None:
        counts = [max(1, -(-size // max_records)) for size in sizes]
        _check_count("maxRecordsPerPartition", max_records, sum(counts))
    if min_partitions is not None:
        _check_count("minPartitions", min_partitions, min_partitions)
    pieces = [
        piece
        for item, span, count in zip(ranges, spans, counts, strict=True)
        for piece in _divide(item, *span, count)
    ]
    filled = [size for _, (start, stop) in pieces if (size := stop - start) > 0]
    if min_partitions is None or len(filled) >= min_partitions or not filled:
        return [item for item, _ in pieces]
    owners = [at for at, count in enumerate(counts) for _ in range(count)]
    return _split_to(pieces, owners, min_partitions)


def split_within(
    ranges: Sequence[OffsetRange], spans: Sequence[tuple[int, int]], least: int, most: int
) -> list[OffsetRange]:
    """Split into `least` pieces or more, as far as rounding allows, but never above `most`.

    Rounding may bring more pieces than were asked for, with thousands of ranges by a few in the
    hundred. How many to ask for is found by halving: a try takes as long as there are ranges.
    """
    found, target = list(ranges), least
    fits, is_too_much = len(ranges), least + 1
    while fits < target < is_too_much:
        pieces = split_ranges(ranges, spans, max_records=None, min_partitions=target)
        if len(pieces) <= most:
            found, fits = pieces, target
        else:
            is_too_much = target
        target = (fits + is_too_much) // 2
    return found


_Piece = tuple[OffsetRange, tuple[int, int]]


def _split_to(pieces: Sequence[_Piece], owners: Sequence[int], least: int) -> list[OffsetRange]:
    """Split the large pieces in proportion, so that there are about `least`.

    Small ones, whose share is one piece, stay whole and are left out of the proportion, as do all
    of their range (for Spark, whose partitions have one range each: of their partition).

    Args:
        pieces: what is read.
        owners: of which range each is, by number.
        least: how many there should be.
    """
    sizes = [stop - start for _, (start, stop) in pieces]
    total = sum(sizes)
    small = {
        owner
        for owner, size in zip(owners, sizes, strict=True)
        if size and _share(size, total, least) == 1
    }
    left = least
    for owner, size in zip(owners, sizes, strict=True):
        if size and owner in small:
            total -= size
            left -= 1
    left = max(left, 1)
    split = []
    for (item, span), owner, size in zip(pieces, owners, sizes, strict=True):
        is_whole = not size or owner in small
        parts = 1 if is_whole else min(size, _share(size, total, left))
        split += [piece for piece, _ in _divide(item, *span, parts)]
    return split


def _share(size: int, total: int, pieces: int) -> int:
    # Rounded half up, as Java does; Python's round() goes to the even number.
    return max(math.floor(size / total * pieces + 0.5), 1)


def _divide(item: OffsetRange, start: int, stop: int, parts: int) -> list[_Piece]:
    """`item`, now [start, stop), in `parts` of about the same size; the last ones are larger."""
    edges = [start]
    for part in range(parts):
        edges.append(edges[-1] + (stop - edges[-1]) // (parts - part))
    pieces = []
    for part in range(parts):
        first = item.start if part == 0 else edges[part]
        last = item.stop if part == parts - 1 else edges[part + 1]
        span = (edges[part], edges[part + 1])
        pieces.append((replace(item, start=first, stop=last), span))
    return pieces


def _check_count(option: str, value: int, count: int) -> None:
    if count > _MOST_PARTITIONS:
        raise ConfigError(
            option, value, f"that makes {count} input partitions; {_MOST_PARTITIONS} is the most"
        )


def group_ranges(
    ranges: Sequence[OffsetRange], max_partitions: int | None, weights: Sequence[int]
) -> list[list[OffsetRange]]:
    """Put ranges into at most `max_partitions` groups of about equal weight.

    Without a maximum, and when there are no more ranges than that, each range is a group of its
    own. The heaviest range goes first, always to the lightest group; within a group ranges keep
    their order.

    Raises:
        ConfigError: a partition has several ranges, and a task reads each partition once.
    """
    if max_partitions is None or len(ranges) <= max_partitions:
        return [[item] for item in ranges]
    _check_once(ranges, max_partitions)
    groups: list[list[int]] = [[] for _ in range(max_partitions)]
    # (weight, number of ranges, group): ranges without weight are spread by their number.
    lightest = [(0, 0, index) for index in range(max_partitions)]
    order = sorted(range(len(ranges)), key=lambda at: -weights[at])
    for at in order:
        weight, size, index = heapq.heappop(lightest)
        groups[index].append(at)
        heapq.heappush(lightest, (weight + weights[at], size + 1, index))
    return [[ranges[at] for at in sorted(group)] for group in groups]


def _check_once(ranges: Sequence[OffsetRange], max_partitions: int) -> None:
    partition, count = Counter(item.topic_partition for item in ranges).most_common(1)[0]
    if count > 1:
        raise ConfigError(
            "maxPartitions",
            max_partitions,
            f"cannot group the ranges of offsetRanges: {partition} has {count} of them",
        )


def _offset(bound: Bound) -> int | None:
    return bound if isinstance(bound, int) else None
