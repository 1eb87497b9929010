"""What is done when records that should be there are not: fail, or pass over them and say so.

The conditions carry Spark's names; `failOnDataLoss` decides. Offsets missing inside a log (by
compaction, transactions, markers) are not losses and never come here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from math import inf

from pyspark_kafkaproto.client.reading.gone import is_gone, note_gone
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import (
    BrokerError,
    DataLoss,
    DeadlineExceeded,
    KafkaProtoError,
    another,
)
from pyspark_kafkaproto.net import ClientConfig

_log = logging.getLogger(__name__)

WAY_OUT = "Who starts anew reads what is there now."
_ADVICE = " ReadSettings(fail_on_data_loss=False) passes over what is missing."


def data_loss(condition: str, text: str, config: ClientConfig) -> DataLoss:
    """The error, with the way out of those whose configuration this is."""
    if config.from_options:
        return DataLoss(condition, text)
    return DataLoss(condition, text, WAY_OUT, _ADVICE)


# How long a leader has to say that a log ends before a position, where that fails the read: one of
# the past takes itself for the leader for 0.3 s (Kafka 4.3; 0.1 s with 4.4), and the log for as
# short as it was.
_BELIEVED_S = 1.0


class Bounds:
    """Where logs begin and end, asked for all of `ranges` at once when the first one is needed.

    With a question for each, thousands of partitions that aged out, as they do together, would take
    thousands of round trips between two rows.
    """

    def __init__(self, router: Router, ranges: Collection[RangeProgress]) -> None:
        self._router = router
        self._ranges = ranges
        self._found: dict[int, dict[TopicPartition, int]] = {}
        self._failure: KafkaProtoError | None = None  # the next of them is not to wait as long

    def of(self, partition: TopicPartition, timestamp: int) -> int:
        """The bound that `timestamp` names of one of them."""
        if self._failure is not None:
            raise another(self._failure)
        if timestamp not in self._found:
            partitions = [item.topic_partition for item in self._ranges]
            try:
                self._found[timestamp] = list_bounds(self._router, partitions, timestamp)
            except KafkaProtoError as error:
                self._failure = error
                raise
        return self._found[timestamp][partition]


class LossPolicy:
    """Decides about one task's missing records."""

    def __init__(self, router: Router, *, fail_on_data_loss: bool) -> None:
        self._router = router
        self._fail = fail_on_data_loss

    def end_came_back(self, progress: RangeProgress) -> None:
        """The partition ends before its range starts: its end was cut off, or it was made anew."""
        self._pass_over(progress, progress.start, f"it ends at offset {progress.stop} now")

    def truncated(self, progress: RangeProgress, epoch: int, end: int) -> None:
        """The log was cut off below records that were read, by an unclean election say.

        Where that does not fail the read it goes on where it is: what was written at these offsets
        since is not read, as their rows went out already.

        Raises:
            DataLoss: where it is to fail the read.
        """
        text = (
            f"Records of topic partition {progress.topic_partition} that were read up to offset "
            f"{progress.position} are gone: the leader holds epoch {epoch} up to offset {end} only."
        )
        self._fail_or_say(text, "The read goes on")

    def check_end(self, progress: RangeProgress, earliest: int) -> None:
        """A range that starts wherever the log does is not to end, by number, before that.

        Raises:
            DataLoss: it does, and that is to fail the read.
        """
        given = progress.range
        if given.start is not None or given.stop is None or given.stop >= earliest:
            return
        text = (
            f"Could not read records up to offset {given.stop} for topic partition "
            f"{progress.topic_partition}: its first offset is {earliest} now."
        )
        self._fail_or_say(text, "Nothing is read of it")

    def topic_missing(
        self, progress: RangeProgress, error: BrokerError, topic_id: bytes | None
    ) -> None:
        """The topic was there when the read was planned; a broker says that it is not.

        A broker may lag behind the others: records are not passed over before request.timeout.ms,
        unless another task has waited for it.

        Raises:
            DataLoss: where that is to fail the read.
        """
        self._bear_deleted(f"Topic {progress.topic_partition.topic}", error)
        if is_gone(topic_id) or self._has_stalled(progress):
            note_gone(topic_id)
            self._pass_over(progress, progress.stop, f"its topic was deleted ({error})")

    def partition_missing(self, progress: RangeProgress, error: BrokerError) -> None:
        """As `topic_missing`, of a partition that its topic has not got any more.

        That was made again, with fewer of them.

        Raises:
            DataLoss: where that is to fail the read.
        """
        self._bear_deleted(f"Partition {progress.topic_partition}", error)
        if self._has_stalled(progress):
            self._pass_over(progress, progress.stop, f"it was deleted ({error})")

    def topics_deleted(
        self, topics: Mapping[str, bytes], error: BrokerError, *, is_certain: bool = False
    ) -> set[str]:
        """As `topic_missing`, where it is not known what a range has; those that are believed.

        Args:
            topics: with their ids.
            error: what a broker says.
            is_certain: all are to be believed.

        Raises:
            DataLoss: where that is to fail the read.
        """
        believed = set()
        for topic, topic_id in sorted(topics.items()):
            is_believed = is_certain or is_gone(topic_id)
            self._bear_deleted(f"Topic {topic}", error, is_left=is_believed)
            if is_believed:
                note_gone(topic_id)
                believed.add(topic)
        return believed

    def partitions_deleted(
        self, partitions: Collection[TopicPartition], error: BrokerError, *, is_certain: bool
    ) -> set[TopicPartition]:
        """As `topics_deleted`, of partitions that their topics have not got any more.

        Raises:
            DataLoss: where that is to fail the read.
        """
        for partition in sorted(partitions):
            self._bear_deleted(f"Partition {partition}", error, is_left=is_certain)
        return set(partitions) if is_certain else set()

    def _bear_deleted(self, what: str, error: BrokerError, *, is_left: bool = False) -> None:
        """Raise where that is to fail the read; say it where it is left out for that."""
        why = f"{what} was deleted while it was being read ({error})."
        if self._fail:
            raise data_loss("PARTITIONS_DELETED", why, self._router.config) from error
        if is_left:
            _log.warning("%s Nothing is read of it, as failOnDataLoss is false.", why)

    def reset(self, progress: RangeProgress, bounds: Bounds) -> None:
        """The leader has no such offset: it aged out, was deleted, or was never written.

        Args:
            progress: whose position it is.
            bounds: of it, and of others that an answer says the same of.

        Raises:
            DataLoss: where that is to fail the read; of an end before the position not at once, as
                of a topic that is not there. Else the position moves to the earliest offset inside
                the range, or to its end, not before request.timeout.ms.
            BrokerError: its topic is not there to be asked, and has not been for that long.
        """
        partition = progress.topic_partition
        try:
            earliest = bounds.of(partition, EARLIEST_TIMESTAMP)
            latest = bounds.of(partition, LATEST_TIMESTAMP)
        except BrokerError as error:
            if not self._is_news(error, progress):
                raise
            return
        if earliest <= progress.position <= latest:  # leaders that change lag for a moment
            self.wait_or_give_up(progress, bounds)
            return
        if progress.position < earliest and self._begins_at_earliest(progress):
            self.check_end(progress, earliest)
            progress.start = progress.position = min(earliest, progress.stop)
            return
        within_s = min(_BELIEVED_S if self._fail else inf, self._router.config.request_timeout_s)
        if progress.position > latest and not self._has_stalled(progress, within_s):
            return  # a leader that was away may not know yet that it is none: see `topic_missing`
        # Below the log, what is left of the range comes next; beyond it there is nothing more.
        target = min(earliest, progress.stop) if progress.position < earliest else progress.stop
        self._pass_over(progress, target, f"it holds the offsets {earliest} to {latest} now")

    def wait_or_give_up(self, progress: RangeProgress, bounds: Bounds) -> None:
        """An answer without records below the range's end: they may show up a little later.

        A new leader knows its high watermark only after its followers have spoken (KIP-207).

        Raises:
            DeadlineExceeded: the leader lists the records, but none came for request.timeout.ms;
                or they belong to a transaction that is open, and wait for its end.
            DataLoss: the leader does not list them, and that is to fail the read.
            BrokerError: its topic is not there to be asked, and has not been for as long again.
        """
        if not self._has_stalled(progress):
            return
        try:
            self._give_up(progress, bounds)
        except BrokerError as error:
            # It has stood still for that time once, or there would be nothing to give up.
            if not self._is_news(error, progress, 2 * self._router.config.request_timeout_s):
                raise

    def _give_up(self, progress: RangeProgress, bounds: Bounds) -> None:
        timeout_s = self._router.config.request_timeout_s
        latest = bounds.of(progress.topic_partition, LATEST_TIMESTAMP)
        if latest > progress.position:
            what = f"{progress.topic_partition}: records from offset {progress.position} on"
            raise DeadlineExceeded(f"{what}, which ends at {latest}", timeout_s)
        self._check_held_back(progress, latest)
        why = f"it ends at offset {latest}, and nothing came in {timeout_s:g} s"
        self._pass_over(progress, progress.stop, why)

    def _check_held_back(self, progress: RangeProgress, stable: int) -> None:
        """Records of an open transaction are not lost: they may still be committed.

        Ranges end behind the last stable offset where others have planned them: an earlier run of
        a stream with another isolation.level.
        """
        if not self._router.config.is_read_committed:
            return
        partition = progress.topic_partition
        end = list_bounds(self._router, [partition], LATEST_TIMESTAMP, read_committed=False)
        if end[partition] > progress.position:
            raise DeadlineExceeded(
                f"{partition}: records from offset {progress.position} on, of a transaction that "
                f"is open: read_committed waits at {stable} for its end, and `kafkaproto "
                "transactions list` shows whose it is",
                self._router.config.request_timeout_s,
            )

    def _is_news(
        self, error: BrokerError, progress: RangeProgress, within_s: float | None = None
    ) -> bool:
        """Whether the topic seems to be deleted by now: who looks for its leader hears of it."""
        is_away = error.code == UNKNOWN_TOPIC_OR_PARTITION
        return is_away and not self._has_stalled(progress, within_s)

    def _has_stalled(self, progress: RangeProgress, within_s: float | None = None) -> bool:
        """Whether it has stood still for so long, this time included; None: request.timeout.ms."""
        now = time.monotonic()
        if progress.stalled_since is None:
            progress.stalled_since = now
        timeout_s = self._router.config.request_timeout_s if within_s is None else within_s
        return now - progress.stalled_since >= timeout_s

    def _begins_at_earliest(self, progress: RangeProgress) -> bool:
        """Whether nothing was read yet of a range that starts wherever the log does."""
        return progress.range.start is None and progress.position == progress.start

    def _pass_over(self, progress: RangeProgress, target: int, why: str) -> None:
        text = (
            f"Could not read records in offset [{progress.position}, {progress.stop}) for topic "
            f"partition {progress.topic_partition}: {why}."
        )
        self._fail_or_say(text, "They are passed over")
        progress.report.passed_over += target - progress.position
        progress.position = target
        progress.stalled_since = None

    def _fail_or_say(self, text: str, instead: str) -> None:
        if self._fail:
            raise data_loss("COULD_NOT_READ_OFFSET_RANGE", text, self._router.config)
        _log.warning("%s %s, as failOnDataLoss is false.", text, instead)
