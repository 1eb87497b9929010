"""How far the reading of a range has come: `fetch` moves it, `loss` may move it on. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_kafkaproto.client.reading.ranges import OffsetRange, RangeReport
from pyspark_kafkaproto.cluster import TopicPartition


@dataclass(slots=True, eq=False)
class RangeProgress:
    """How far the reading of one range has come: it began at `start`, and ends at `stop`.

    Attributes:
        topic_partition: what is read.
        stalled_since: when an answer first came without the records that should be there.
        is_out_of_range: whether the last answer said that there is no such offset.
        doubted: where a damaged batch was asked for again, as nothing told its end; once, not more.
        batch_bytes: what the batch at `position` takes, if an answer was too small for it.
    """

    range: OffsetRange
    start: int
    position: int
    stop: int
    report: RangeReport = field(default_factory=RangeReport)
    stalled_since: float | None = None
    is_out_of_range: bool = False
    doubted: int | None = None
    batch_bytes: int = 0
    topic_partition: TopicPartition = field(init=False)  # asked for again and again

    def __post_init__(self) -> None:
        self.topic_partition = self.range.topic_partition

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to fetch."""
        return self.position >= self.stop
