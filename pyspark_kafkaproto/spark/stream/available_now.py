"""Trigger.AvailableNow: the offsets a query was promised to end at, and what may not happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError

_Partitions = Collection[TopicPartition]
_Offsets = Mapping[TopicPartition, int]

_ADVICE = "The error could be transient: restart your query, and report if you still see it."


class AvailableNowFailed(KafkaProtoError):
    """Partitions changed under a query that was to end at a snapshot; carries Spark's condition."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"[{condition}] {text} {_ADVICE}")
        self.condition = condition


class AvailableNow:
    """The snapshot of one run.

    Args:
        ends: where each partition ended when the run began.
    """

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        self.ends = dict(ends)
        self._is_checked = False

    def ends_beyond(
        self,
        at: dict[TopicPartition, int],
        ask: Callable[[dict[TopicPartition, int]], _Offsets],
    ) -> dict[TopicPartition, int]:
        """The ends; those that lie before where the query is are asked for again, once.

        The snapshot is taken before that is known, so a broker's bad moment may be in it.
        """
        behind = [item for item, offset in at.items() if self.ends.get(item, -1) < offset]
        if behind and not self._is_checked:
            latest = ask(at)
            again = {item: latest[item] for item in behind if item in latest}
            self.ends = self.ends | again  # a new one: streams keep what they were given
        self._is_checked = True
        return self.ends

    def add_topics(self, partitions: _Partitions, ask: Callable[[_Partitions], _Offsets]) -> None:
        """Topics of which the snapshot has nothing, where a query is to start in them.

        They were not seen at a broker's bad moment, or are as new as the query.
        """
        known = {item.topic for item in self.ends}
        news = ask([item for item in partitions if item.topic not in known])
        self.ends = {**self.ends, **news}

    def reach(self, starts: _Offsets) -> None:
        """A query that starts beyond the snapshot, of which it knew later, ends where it starts."""
        beyond = {item: at for item, at in starts.items() if at > self.ends.get(item, at)}
        self.ends = self.ends | beyond

    def check(self, end: _Offsets, latest: _Offsets) -> None:
        """A batch's end against the snapshot and against what is there now.

        A batch that an earlier run has logged may lack partitions that were added since; they are
        read by the next one.

        Raises:
            AvailableNowFailed: with Spark's condition.
        """
        if strange := end.keys() - self.ends.keys():
            raise AvailableNowFailed(
                "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
                f"The batch ends in partitions that the snapshot has not got: {_names(strange)}.",
            )
        if above := [item for item in end if end[item] > self.ends[item]]:
            raise AvailableNowFailed(
                "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
                f"The batch ends beyond the snapshot: {_compared(above, self.ends, end)}.",
            )
        if lost := end.keys() - latest.keys():
            raise AvailableNowFailed(
                "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
                f"Partitions were lost while the query ran: {_names(lost)}.",
            )
        if back := [item for item in end if end[item] > latest[item]]:
            raise AvailableNowFailed(
                "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_"
                "AVAILABLENOW",
                f"Partitions end before the batch does: {_compared(back, latest, end)}.",
            )


def _names(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))


def _compared(
    partitions: Collection[TopicPartition],
    there: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
) -> str:
    return ", ".join(f"{item} at {there[item]}, not {end[item]}" for item in sorted(partitions))
