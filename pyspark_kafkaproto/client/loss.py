"""What is done when records that should be there are not: fail, or pass over them and say so.

The conditions carry Spark's names; `failOnDataLoss` decides. Offsets missing inside a log (by
compaction, transactions, markers) are not losses and never come here.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    list_offsets_at,
)
from pyspark_kafkaproto.errors import DataLoss

if TYPE_CHECKING:
    from pyspark_kafkaproto.client.fetch import RangeProgress

_log = logging.getLogger(__name__)


class LossPolicy:
    """Decides about one task's missing records."""

    def __init__(self, router: Router, *, fail_on_data_loss: bool) -> None:
        self._router = router
        self._fail = fail_on_data_loss

    def reset(self, progress: RangeProgress) -> None:
        """The leader has no such offset: it aged out, was deleted, or was never written.

        Raises:
            DataLoss: where that is to fail the read. Else the position moves to the earliest offset
                inside the range, or to its end.
        """
        partition = progress.topic_partition
        earliest = self._bound(partition, EARLIEST_TIMESTAMP)
        latest = self._bound(partition, LATEST_TIMESTAMP)
        if progress.range.start is None and progress.position < earliest:
            progress.position = earliest  # it was to start at the earliest, which moved meanwhile
            return
        if earliest <= progress.position < latest:
            # It is there by now: leaders that change lag for a moment.
            self.wait_or_give_up(progress, latest)
            return
        stop = latest if progress.stop is None else progress.stop
        self._lose(progress, f"it holds the offsets {earliest} to {latest} now")
        progress.stop = stop
        progress.position = min(max(progress.position, earliest), stop)
        if progress.position > latest:
            progress.position = stop

    def wait_or_give_up(self, progress: RangeProgress, end: int) -> None:
        """An answer without records below the range's end: they may show up a little later.

        A new leader knows its high watermark only after its followers have spoken (KIP-207).
        """
        now = time.monotonic()
        if progress.stalled_since is None:
            progress.stalled_since = now
        if now - progress.stalled_since < self._router.config.request_timeout_s:
            return
        self._lose(progress, f"it ends at offset {end}, and nothing came within the time-out")
        progress.position = progress.stop or progress.position

    def _bound(self, partition: TopicPartition, timestamp: int) -> int:
        found = list_offsets_at(self._router, [partition], timestamp)[partition]
        return 0 if found is None else found

    def _lose(self, progress: RangeProgress, why: str) -> None:
        partition = progress.topic_partition
        stop = "latest" if progress.stop is None else progress.stop
        text = (
            f"Could not read records in offset [{progress.position}, {stop}) for topic partition "
            f"{partition}: {why}."
        )
        if self._fail:
            raise DataLoss("COULD_NOT_READ_OFFSET_RANGE", text)
        _log.warning("%s They are passed over, as failOnDataLoss is false.", text)
