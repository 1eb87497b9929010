"""What becomes of a member's positions that are not there: auto.offset.reset decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from pyspark_kafkaproto.client.reading.loss import Bounds, LossPolicy
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pyspark_kafkaproto.cluster.routing import OPINIONS
from pyspark_kafkaproto.net import ConsumerConfig

MADE_AGAIN: Final = "its topic was deleted and made again"
_TIMESTAMPS: Final = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}


def reset_timestamp(config: ConsumerConfig) -> int | None:
    """What ListOffsets is asked for by auto.offset.reset, at this moment; None: it is none."""
    back_s = config.reset_back_s
    if back_s is not None:
        # The whole second: partitions that are reset together are asked about together.
        return max(0, int(time.time() - back_s)) * 1000
    return _TIMESTAMPS.get(config.auto_offset_reset)


class Reset(Protocol):
    """Moves a partition's position to an offset that is there."""

    def __call__(self, partition: TopicPartition, why: str, offset_at: Callable[[int], int]) -> int:
        """The offset to go on with, or an error that says `why`, as auto.offset.reset wants.

        Args:
            partition: whose position it is.
            why: what has become of the offset that it was at.
            offset_at: gives that offset, for the timestamp that auto.offset.reset stands for.
        """


class ResetPolicy(LossPolicy):
    """Takes what `Reset` says; no read fails here by `failOnDataLoss`."""

    def __init__(self, router: Router, reset: Reset) -> None:
        super().__init__(router, fail_on_data_loss=False)
        self._reset_to = reset
        self._tries: dict[TopicPartition, int] = {}  # in a row: no offset, and not below the log

    def found(self, partition: TopicPartition) -> None:
        """A leader has the position: what another one said before counts no more."""
        self._tries.pop(partition, None)

    def reset(self, progress: RangeProgress, bounds: Bounds) -> None:
        """It aged out, was deleted, or was never written: go on where the policy says, or raise."""
        if self._may_be_there(progress, bounds):
            return
        self._reset_in(bounds, progress, f"it has no offset {progress.position} (any more)")

    def _reset_in(self, bounds: Bounds, progress: RangeProgress, why: str) -> None:
        partition = progress.topic_partition
        progress.position = self._reset_to(partition, why, partial(bounds.of, partition))

    def _may_be_there(self, progress: RangeProgress, bounds: Bounds) -> bool:
        """Whether another broker is to say who leads, before a position counts as beyond the end.

        One that has been away for a while takes itself for the leader for a moment, and the log for
        as short as it was then.
        """
        partition = progress.topic_partition
        tries = self._tries.pop(partition, 0) + 1
        if tries == OPINIONS or progress.position < bounds.of(partition, EARLIEST_TIMESTAMP):
            progress.stalled_since = None
            return False
        self._tries[partition] = tries
        progress.stalled_since = time.monotonic()  # so its leader is doubted
        return True

    def truncated(self, progress: RangeProgress, epoch: int, end: int) -> None:
        """Records that were read are gone, others are at their offsets: those are read, or raise.

        As in the Java client (KIP-320) reading goes on where the log was cut off.
        """
        why = (
            f"records that were read up to offset {progress.position} are gone: the leader holds "
            f"epoch {epoch} up to offset {end} only"
        )
        end = min(end, progress.position)
        progress.position = self._reset_to(progress.topic_partition, why, lambda _: end)

    def made_again(self, progress: RangeProgress, bounds: Bounds) -> None:
        """An offset of the topic before means nothing in the one that has its name now."""
        why = f"{MADE_AGAIN}: it has no offset {progress.position} of the one before"
        self._reset_in(bounds, progress, why)
