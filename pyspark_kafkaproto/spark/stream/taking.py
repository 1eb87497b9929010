"""How far the next micro-batch goes, by the limits of the stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import inf

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.limits import (
    StreamLimits,
    backlog,
    offsets_for_bytes,
    share_out,
)
from pyspark_kafkaproto.spark.stream.tail import Offsets, Tail

_Offsets = Mapping[TopicPartition, int]

# Mean sizes change slowly; asking for them with every batch takes three round trips.
_MEANS_AGE_S = 10.0


class Taking:
    """The limits of one stream, and when it was last not held back, whatever there was to read."""

    def __init__(self, tail: Tail, limits: StreamLimits) -> None:
        self._tail = tail
        self._limits = limits
        self._last_batch_at = -inf  # the first batch never waits, as in Spark's own connector
        self._beginnings: Offsets = {}  # of what was added, and is not in a batch yet
        self._means: dict[TopicPartition, float] = {}
        self._means_at = -inf

    def take(self, at: Offsets, ends: Offsets, most: int, *, waits: bool) -> Offsets:
        """Ends of the next batch; `at` itself if there are no more offsets, or it waits for them.

        Args:
            at: where the stream is.
            ends: how far it can go.
            most: maxOffsetsPerTrigger.
            waits: whether minOffsetsPerTrigger counts: not where no more offsets will come.
        """
        is_still = ends is at  # none of thousands of partitions is to be looked at
        starts = at if is_still else self._starts(at, ends)
        if not is_still and not starts.keys() >= ends.keys():  # one was added, and is gone by now
            ends = {item: end for item, end in ends.items() if item in starts}
        sizes = {} if is_still else backlog(starts, ends)
        if waits and self._is_too_little(sum(sizes.values())):
            return at
        self._last_batch_at = time.monotonic()
        if sizes and (sum(sizes.values()) > most or self._limits.max_bytes is not None):
            # Or batch after batch would be of what is gone.
            starts = starts | self._tail.behind_losses({item: starts[item] for item in sizes})
            sizes = backlog(starts, ends)
        if self._limits.max_bytes is not None and sizes:
            self._look_at_sizes({item: starts[item] for item in sizes})
            most = min(most, offsets_for_bytes(sizes, self._means, self._limits.max_bytes))
        return at if is_still else share_out(starts, ends, most)

    def _look_at_sizes(self, starts: _Offsets) -> None:
        now = time.monotonic()
        if now - self._means_at > _MEANS_AGE_S or not self._means.keys() >= starts.keys():
            self._means, self._means_at = self._tail.bytes_per_offset(starts), now

    def _is_too_little(self, count: int) -> bool:
        least = self._limits.min_offsets
        waited_s = time.monotonic() - self._last_batch_at
        return least is not None and count < least and waited_s < self._limits.max_delay_s

    def _starts(self, at: _Offsets, ends: _Offsets) -> Offsets:
        """`at`, and the first offsets of partitions that were added, where they are there."""
        added = [item for item in ends if item not in at]
        news = [item for item in added if item not in self._beginnings]
        known = self._beginnings | self._tail.beginnings_of_added(news)
        # Of no others: a topic that was read and deleted, and is made again, begins anew.
        self._beginnings = {item: known[item] for item in added if item in known}
        return self._beginnings | dict(at)
