"""Fetching without an end: what is written is read, from all leaders in turn.

A member commits what it was given, so answers are received and judged as a whole before a row of
them goes out; nor may a poll wait for the pieces of a large one.

A member asks one leader after the other, in an order in which no partition goes short; only when
none of them had anything does a broker hold its answer, for its share of fetch.max.wait.ms.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from pyspark_kafkaproto.client.block import Block
from pyspark_kafkaproto.client.fetch import Fetcher
from pyspark_kafkaproto.client.loss import LossPolicy
from pyspark_kafkaproto.client.progress import RangeProgress
from pyspark_kafkaproto.client.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.net import ConsumerConfig, Deadline, retrying
from pyspark_kafkaproto.net.retry import is_retriable

_log = logging.getLogger(__name__)

NO_END: Final = 2**63 - 1

Reset = Callable[[TopicPartition, int], int]


class _ResetPolicy(LossPolicy):
    """Offsets that are not there: auto.offset.reset decides."""

    def __init__(self, router: Router, reset: Reset) -> None:
        super().__init__(router, fail_on_data_loss=False)
        self._reset_to = reset

    def reset(self, progress: RangeProgress) -> None:
        """Go on where the policy says, or raise as it says."""
        progress.position = self._reset_to(progress.topic_partition, progress.position)


class Tail(Fetcher):
    """Reads partitions from their positions on.

    Args:
        positions: where to begin.
        config: the member's.
        router: whom to ask through.
        reset: from a partition and an offset that is not there to the offset to go on with.
    """

    def __init__(
        self,
        positions: Mapping[TopicPartition, int],
        config: ConsumerConfig,
        router: Router,
        reset: Reset,
    ) -> None:
        ranges = tuple(OffsetRange(*item, start, NO_END) for item, start in positions.items())
        settings = ReadSettings(fail_on_data_loss=False)
        super().__init__(ReadTask(ranges, {}, {}), config.client, settings, router)
        self._loss = _ResetPolicy(router, reset)
        self._max_wait_s = config.fetch_max_wait_s
        self._min_bytes = config.fetch_min_bytes
        self._quiet = 0  # answers without a record, one after the other
        self._until = Deadline.after(0)
        self._failing_since: float | None = None
        self._open = [
            RangeProgress(item, item.start or 0, item.start or 0, NO_END) for item in ranges
        ]
        self.progress = list(self._open)

    def close(self) -> None:
        """Let go of what is under way."""
        self._leave_nothing_in_flight()

    def next_blocks(self, deadline: Deadline) -> list[Block]:
        """What one leader has, or nothing; waits up to `deadline` where none had anything.

        Errors that pass are raised when they have lasted for default.api.timeout.ms.
        """
        began = time.monotonic()
        self._until = deadline
        wait_s = self._wait_s()
        request_s = self._config.request_timeout_s
        try:
            parts = retrying(
                f"fetch from {self._open[0].topic_partition}",
                lambda: self._exchange(Deadline.after(request_s)),
                deadline,
                self._config.backoff,
                self._recover,
            )
        except KafkaProtoError as error:
            self._bear(error, began)
            return []
        self._failing_since = None
        blocks = self._advance(parts)
        self._quiet = 0 if blocks else self._quiet + 1
        self._let_others_first({block.progress for block in blocks})
        if wait_s and not blocks:
            # Not every broker holds an empty answer.
            early_s = wait_s - (time.monotonic() - began)
            time.sleep(max(0.0, min(early_s, self._config.retry_backoff_s)))
        self._send_ahead()
        return blocks

    def _bear(self, error: KafkaProtoError, began: float) -> None:
        """Raise what does not pass, or has lasted for too long."""
        self._failing_since = self._failing_since or began
        lasted_s = time.monotonic() - self._failing_since
        if not is_retriable(error) or lasted_s >= min(
            self._config.default_api_timeout_s, error.patience_s
        ):
            raise error
        _log.debug("nothing fetched for now: %s", error)
        self._recover(error)

    def _let_others_first(self, served: set[RangeProgress]) -> None:
        """Who was not asked comes first, then who had nothing, then who had something."""
        asked = set(self._asked)
        self._open.sort(key=lambda item: (item in asked) + (item in served))

    def _nothing_came(self, progress: RangeProgress) -> None:
        """The end of the partition, for now."""

    def _wait_s(self) -> float:
        if not self._is_waiting():
            return 0.0
        return min(self._max_wait_s / max(1, self._directory.places), self._until.remaining_s)

    def _is_waiting(self) -> bool:
        return self._quiet >= max(1, self._directory.places)
