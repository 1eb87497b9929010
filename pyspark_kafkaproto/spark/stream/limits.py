"""How much a micro-batch takes: the limits of a stream, in Spark's words. Pure.

Limits count offsets, as Spark's own do: holes left by compaction and transactions count too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cluster import TopicPartition

_Offsets = Mapping[TopicPartition, int]

MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The limits that a stream was given; None where it was not.

    Attributes:
        max_offsets: maxOffsetsPerTrigger.
        min_offsets: minOffsetsPerTrigger; a batch waits for so many.
        max_delay_s: maxTriggerDelay, how long it waits at most.
        max_bytes: maxBytesPerTrigger.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = 900.0
    max_bytes: int | None = None


def backlog(starts: _Offsets, ends: _Offsets) -> dict[TopicPartition, int]:
    """How many offsets lie between, for the partitions where there are any."""
    return {
        partition: end - starts[partition]
        for partition, end in ends.items()
        if partition in starts and end > starts[partition]
    }


def share_out(starts: _Offsets, ends: _Offsets, most: int) -> dict[TopicPartition, int]:
    """Ends that lie at most about `most` offsets from the starts in all, as Spark shares them out.

    Each partition gets its part of `most` in proportion to its backlog, rounded down, but one
    offset where that would be none: with more partitions than `most` it is passed a little, and no
    partition starves.

    Args:
        starts: where each partition is.
        ends: how far it could go; a partition without a start, or with its end before it, keeps
            its end.
        most: how many offsets, 1 or more.
    """
    sizes = backlog(starts, ends)
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    shared = dict(ends)
    for partition, size in sizes.items():
        part = most * size / total
        taken = math.ceil(part) if part < 1 else most * size // total
        shared[partition] = min(ends[partition], starts[partition] + taken)
    return shared


def offsets_for_bytes(
    sizes: _Offsets, bytes_per_offset: Mapping[TopicPartition, float], most: int
) -> int:
    """About how many of the offsets in `sizes` make `most` bytes; 1 at least."""
    total = sum(sizes.values())
    total_bytes = sum(size * bytes_per_offset.get(item, 0.0) for item, size in sizes.items())
    if total_bytes <= most:
        return max(1, total)
    return max(1, int(total * most / total_bytes))
