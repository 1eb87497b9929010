"""Where micro-batches end for an engine that limits them: PySpark 4.2 and later.

It says where the stream is, how much a batch may take, and what Trigger.AvailableNow has promised.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.spark.read import TaskPartition
from pyspark_kafkaproto.spark.stream.available_now import AvailableNow
from pyspark_kafkaproto.spark.stream.limits import MOST
from pyspark_kafkaproto.spark.stream.offsets import StreamOffsets
from pyspark_kafkaproto.spark.stream.options import StreamOptions
from pyspark_kafkaproto.spark.stream.planning import refuse_losses
from pyspark_kafkaproto.spark.stream.reader import KafkaStreamReader
from pyspark_kafkaproto.spark.stream.tail import Offsets
from pyspark_kafkaproto.spark.stream.taking import Taking

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LimitedStreamReader(KafkaStreamReader, SupportsTriggerAvailableNow):
    """A source whose batches take no more than their limits."""

    def __init__(self, schema: StructType, options: StreamOptions) -> None:
        super().__init__(schema, options)
        self._is_batch_0_logged = False
        self._latest: Offsets = {}

    @cached_property
    def _taking(self) -> Taking:
        return Taking(self._tail, self._options.limits)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Never ReadAllAvailable: that one then means Trigger.Once."""
        return ReadMaxRows(self._options.limits.max_offsets or MOST)

    @packets_with_errors()
    def latestOffset(self, start: StreamOffsets, limit: ReadLimit) -> StreamOffsets:  # noqa: N802
        """Where the next micro-batch ends; `start` itself if there is to be none."""
        at = self._spoken.from_json(start)
        if self._start_refused is not None and not self._is_batch_0_logged:
            raise self._start_refused
        self._recall(start)
        was_asked = self._note_asked()
        if self._is_fresh(at) and not isinstance(limit, ReadAllAvailable):
            # An empty batch 0 logs the start: after a restart it may have moved, and partitions
            # may have been added.
            self._is_batch_0_logged = True
            self._tail.report_cut_off(at)  # from now on; the next look may be much later
            return start
        self._keep_pace()
        self._latest = self._ends(at)
        self._tail.report_cut_off(at)
        refuse_losses(self._options.read, at, self._latest)
        if not was_asked:
            self._tail.refuse_missing(at)
        taken = self._take(at, limit)
        # A run that goes on is not asked before a batch is done that was logged and not finished.
        is_done = was_asked or at != self._first
        is_idle = self._note_taken(at, taken, is_done=is_done)
        return start if is_idle and not self._has_other_logs else self._say_next(taken)

    def reportLatestOffset(self) -> StreamOffsets | None:  # noqa: N802 - Spark's name
        """Where partitions ended when `latestOffset` last looked."""
        return self._say(self._latest) if self._latest else None

    @packets_with_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember where partitions end now: the query ends there."""
        self._available = AvailableNow(self._tail.ends({}))

    def _plan(self, at: Offsets, until: Offsets) -> list[TaskPartition]:
        if self._is_unfinished_start(at):
            self._is_batch_0_logged = True
            at = self._start_of_batch_0(at, until, is_logged_empty=True)
        # What an earlier run has logged is planned before anybody asks where the query is. This
        # run's snapshot does not bound it: what is gone of it is a loss, as under any trigger.
        if self._available is not None and self._is_asked:
            latest = self._tail.ends(until)
            self._available.ends_beyond(until, lambda _: latest)
            self._available.check(until, latest)
        return super()._plan(at, until)

    def _is_fresh(self, at: Offsets) -> bool:
        return not self._is_batch_0_logged and self._first == at

    def _ends(self, at: Offsets) -> Offsets:
        if self._available is None:
            return self._tail.ends(at)
        return self._available.ends_beyond(at, self._tail.ends)

    def _take(self, at: Offsets, limit: ReadLimit) -> Offsets:
        if isinstance(limit, ReadAllAvailable):
            return self._latest
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else MOST
        return self._taking.take(at, self._latest, most, waits=self._available is None)
