"""Where micro-batches end for an engine that knows no limits: PySpark 4.0 and 4.1.

It asks where the stream ends now, and nothing else; each batch takes all there is. Where the stream
is it says once, before a query goes on from a checkpoint: it wants a plan of what lies between the
offsets that were logged last and themselves. Trigger.AvailableNow is one batch there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.spark.read import TaskPartition
from pyspark_kafkaproto.spark.stream.available_now import AvailableNow
from pyspark_kafkaproto.spark.stream.offsets import StreamOffsets
from pyspark_kafkaproto.spark.stream.options import StreamOptions
from pyspark_kafkaproto.spark.stream.planning import refuse_losses
from pyspark_kafkaproto.spark.stream.reader import KafkaStreamReader
from pyspark_kafkaproto.spark.stream.tail import Offsets

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class UnlimitedStreamReader(KafkaStreamReader):
    """A source whose batches take all there is."""

    def __init__(self, schema: StructType, options: StreamOptions) -> None:
        super().__init__(schema, options)
        self._at: Offsets | None = None  # None: nothing was logged, the query is a fresh one

    @packets_with_errors()
    def latestOffset(self) -> StreamOffsets:  # type: ignore[override]  # noqa: N802 - as 4.1 has it
        """Where the next micro-batch ends; where the last one ended if there is to be none."""
        # Nor is it asked before a batch is done that an earlier run has logged and not finished.
        was_asked, is_fresh = self._note_asked(), self._at is None
        if self._at is None:
            self._at, ends = self._begin()
        else:
            self._keep_pace()
            ends = self._tail.ends(self._at)
        self._tail.report_cut_off(self._at)
        refuse_losses(self._options.read, self._at, ends)
        if not (was_asked or is_fresh):
            self._tail.refuse_missing(self._at)
        self._note_taken(self._at, ends, is_done=not is_fresh)
        self._at = ends  # the engine always takes it: it asks again when that batch is done
        return self._say_next(ends)

    def _plan(self, at: Offsets, until: Offsets) -> list[TaskPartition]:
        if self._at is None:
            self._at = until
        if self._is_unfinished_start(at):
            at = self._start_of_batch_0(at, until, is_logged_empty=False)
        return super()._plan(at, until)

    def _begin(self) -> tuple[Offsets, Offsets]:
        """Where a fresh query starts, and where its first batch ends.

        The ends come first: from `latest` on that batch is empty then, and logs where it was.
        """
        self._available = AvailableNow(self._tail.ends({}))
        self._first = self._resolve_start()
        return self._first, self._available.ends
