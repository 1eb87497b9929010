"""The streaming source: a micro-batch engine's questions, answered from Kafka.

On the driver one process per source and query asks where partitions end and plans; it keeps its
connections. Readers that are pickled for tasks open nothing. What is read stands in the offsets
alone, so a batch that is run again reads the same records. Where the next batch ends is what
engines ask in two ways: `limited` and `unlimited` answer it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.spark.planning import while_topics_go
from pyspark_kafkaproto.spark.read import TaskPartition, read_partition
from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.stream.available_now import AvailableNow
from pyspark_kafkaproto.spark.stream.commits import GroupCommits
from pyspark_kafkaproto.spark.stream.offsets import Spoken, StreamOffsets, recalled
from pyspark_kafkaproto.spark.stream.options import StreamOptions
from pyspark_kafkaproto.spark.stream.planning import plan_batch
from pyspark_kafkaproto.spark.stream.starting import (
    resolve_stream_start,
    start_of_logged_batch_0,
)
from pyspark_kafkaproto.spark.stream.tail import Offsets, Tail
from pyspark_kafkaproto.spark.workers import configure_logging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)

# The engine asks an idle source every 10 ms. Answered at once, that is a tenth of a core.
_IDLE_PACE_S = 0.1
# A look at 10,000 partitions is work for the driver and for brokers: the rest is that much longer.
_RESTS_PER_LOOK = 10
_LONGEST_REST_S = 0.3


class KafkaStreamReader(DataSourceStreamReader):
    """One Kafka source of a streaming query; a subclass knows where its next batch ends.

    Offsets are those of Spark's own connector, `{"topic":{"0":23}}`, each the next one to read.
    """

    def __init__(self, schema: StructType, options: StreamOptions) -> None:
        self._schema = schema
        self._options = options
        self._first: Offsets | None = None  # where a query without a checkpoint starts
        self._start_refused: ConfigError | BrokerError | None = None
        self._is_asked = False  # whether this run has been asked where a batch ends
        self._has_recalled = False  # whether it was told where an earlier run has been
        self._available: AvailableNow | None = None  # beyond these ends no query starts
        self._taken: Offsets | None = None  # where the batch ends that was asked for last
        self._idle_since: float | None = None
        self._looking_since = 0.0
        self._rest_s = _IDLE_PACE_S
        self._spoken = Spoken()

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(type(self), self._schema, self._options)

    @cached_property
    def _tail(self) -> Tail:
        configure_logging()
        say_which_codec()
        return Tail(self._options.read)

    @cached_property
    def _commits(self) -> GroupCommits | None:
        group = self._options.commit_group
        if group is None:
            return None
        commits = GroupCommits(self._options.read.driver, group)
        try:
            commits.check_free()
        except BaseException:
            commits.close()
            raise
        return commits

    @packets_with_errors()
    def initialOffset(self) -> StreamOffsets:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint starts. Asked several times: the same answer.

        The engine also asks before it repeats a batch 0 that an earlier run has logged. Then it is
        no error if the start does not fit partitions that were added since, or if a topic is gone.
        So this does not raise it: `latestOffset`, which the engine asks of a fresh query, does.
        """
        if self._first is None:
            try:
                self._first = self._resolve_start()
            except (ConfigError, BrokerError) as error:
                if isinstance(error, BrokerError) and error.code != UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                self._first, self._start_refused = {}, error
        return self._say(self._first)

    @packets_with_errors()
    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> list[TaskPartition]:
        """The input partitions of the micro-batch [start, end)."""
        at, until = self._spoken.from_json(start), self._spoken.from_json(end)
        self._recall(start, end)
        return self._plan(at, until)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one input partition."""
        read = self._options.read
        return read_partition(partition, self._schema, read.client, read.settings)

    @packets_with_errors()
    def commit(self, end: StreamOffsets) -> None:
        """The engine has done with everything before `end`."""
        if self._commits is not None:
            done = self._spoken.from_json(end)
            # The next batch is known by now. Where it ends before this one, or has no end, the
            # topic was made again or deleted: the old one's offset says nothing of the new one.
            taken = done if self._taken is None else self._taken
            there = [item for item in done if item in taken]
            self._commits.commit({item: min(done[item], taken[item]) for item in there})

    def stop(self) -> None:
        """Close all connections."""
        opened = vars(self)  # what was never used was never opened
        for part in (opened.get("_tail"), opened.get("_commits")):
            if part is not None:
                part.close()

    # What the answers have in common

    def _say(self, offsets: Offsets) -> StreamOffsets:
        """Offsets as the engine logs them."""
        lineage = self._tail.lineage if self._options.logs_lineage else None
        return self._spoken.to_json(offsets, lineage)

    def _say_next(self, offsets: Offsets) -> StreamOffsets:
        """Where the next batch ends, in logs that may be others than those of the last word."""
        if self._has_other_logs:
            self._spoken = Spoken()
            self._tail.has_other_logs = False
        return self._say(offsets)

    @property
    def _has_other_logs(self) -> bool:
        """Whether the same offsets are to be logged again, as those of other logs."""
        return self._options.logs_lineage and self._tail.has_other_logs

    def _recall(self, *logged: StreamOffsets) -> None:
        """Look whether logs are those that an earlier run has read, once the engine says of which.

        Args:
            logged: offsets, and later ones of the same partitions.

        Raises:
            DataLoss: they are not, and that is to fail the query.
        """
        if self._options.logs_lineage and not self._has_recalled:
            self._tail.recall(*recalled(logged))
        self._has_recalled = True

    def _resolve_start(self, among: Offsets | None = None) -> Offsets:
        def look() -> Offsets:
            return self._look_up_start(among)

        return while_topics_go(self._tail.cluster, self._options.read, look)

    def _look_up_start(self, among: Offsets | None) -> Offsets:
        snapshot = None
        if self._available is not None:
            partitions = self._tail.partitions(must_exist=among is None)
            self._available.add_topics(partitions, self._tail.latest)
            snapshot = self._available.ends
        first = resolve_stream_start(self._tail, self._options.read, snapshot, among)
        if self._available is not None:
            self._available.reach(first)
        return first

    def _plan(self, at: Offsets, until: Offsets) -> list[TaskPartition]:
        tasks = plan_batch(self._tail, self._options.read, at, until)
        return [TaskPartition(task) for task in tasks]

    def _is_unfinished_start(self, at: Offsets) -> bool:
        """Whether an earlier run has logged batch 0, which is run again before anything else."""
        return not self._is_asked and self._first == at

    def _start_of_batch_0(self, at: Offsets, until: Offsets, *, is_logged_empty: bool) -> Offsets:
        """Where the batch 0 begins that an earlier run has logged."""
        if self._start_refused is not None:
            at = self._start_among(until, is_logged_empty=is_logged_empty)
        return start_of_logged_batch_0(
            self._options.read, at, until, is_logged_empty=is_logged_empty
        )

    def _start_among(self, until: Offsets, *, is_logged_empty: bool) -> Offsets:
        """The start of these partitions; their end where it is not found any more, nor needed."""
        try:
            return self._resolve_start(until)
        except ConfigError as error:
            if not is_logged_empty:
                raise
            _log.warning("batch 0 is logged, and taken to start where it ends: %s", error)
            return until

    def _note_asked(self) -> bool:
        """The engine asks where a batch ends; whether this run was asked before.

        Raises:
            ConfigError: `commitGroupId` is a group that takes no commits. Now: the first batch may
                be the only one of a run, and nobody would hear of it, or only behind its rows.
        """
        was_asked, self._is_asked = self._is_asked, True
        if not was_asked and self._commits is not None:
            _log.debug("what is read is committed to group %r", self._options.commit_group)
        return was_asked

    def _keep_pace(self) -> None:
        if self._idle_since is not None:
            time.sleep(max(0.0, self._idle_since + self._rest_s - time.monotonic()))
        self._looking_since = time.monotonic()

    def _note_taken(self, at: Offsets, taken: Offsets, *, is_done: bool) -> bool:
        """The next batch is [at, taken); whether there is none.

        Args:
            at: where the stream is.
            taken: where the batch ends.
            is_done: whether the engine has done with what comes before `at`. It tells `commit` so
                only when there is a next batch: after a restart, maybe not for days.
        """
        self._taken = taken
        is_idle = taken is at or taken == at
        if is_idle and self._commits is not None:
            if is_done and at:
                self._commits.commit(at)
            self._commits.keep_alive()
        now = time.monotonic()
        self._idle_since = now if is_idle else None
        look_s = now - self._looking_since
        self._rest_s = min(max(_IDLE_PACE_S, _RESTS_PER_LOOK * look_s), _LONGEST_REST_S)
        return is_idle
