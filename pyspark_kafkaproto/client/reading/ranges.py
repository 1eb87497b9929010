"""What to read: offset ranges, the task of one reader, the report of what it did. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.records import DEFAULT_BATCH_LIMIT_BYTES


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets [start, stop) of a partition.

    A bound of None is found when the range is read: the earliest offset, or the latest one (the
    last stable one under read_committed).
    """

    topic: str
    partition: int
    start: int | None
    stop: int | None

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it lies."""
        return TopicPartition(self.topic, self.partition)

    @property
    def count(self) -> int | None:
        """How many offsets it spans; None while a bound is open."""
        if self.start is None or self.stop is None:
            return None
        return max(0, self.stop - self.start)

    def __str__(self) -> str:
        start = "earliest" if self.start is None else self.start
        stop = "latest" if self.stop is None else self.stop
        return f"{self.topic_partition}[{start}, {stop})"


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one reader reads, and what it need not ask for: nothing live, nothing secret.

    Attributes:
        ranges: of different partitions.
        leaders: who leads them, where somebody has looked that up.
        topic_ids: of their topics, likewise; a topic of another id is not read then.
    """

    ranges: tuple[OffsetRange, ...]
    leaders: Mapping[TopicPartition, Leader] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        partitions = [item.topic_partition for item in self.ranges]
        if len(set(partitions)) < len(partitions):
            raise LocalProtocolError("a task reads each partition once: join its ranges")


class Mode(Enum):
    """What becomes of a record batch that is damaged, in Spark's words."""

    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"
    PERMISSIVE = "PERMISSIVE"


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How to read, beside the client's configuration.

    Args:
        fail_on_data_loss: whether records that are gone fail the read or are passed over.
        batch_limit_bytes: the largest decompressed record batch that is accepted.
        mode: whether a damaged batch fails the read, is left out, or is kept aside.
        uses_threads: whether threads of its own receive, and decode, beside the reader's: faster
            where a processor would have nothing to do. None: if this process may use several.
        columns_option: what the columns were asked for with, as errors about them name it.
    """

    fail_on_data_loss: bool = True
    batch_limit_bytes: int = DEFAULT_BATCH_LIMIT_BYTES
    mode: Mode = Mode.FAILFAST
    uses_threads: bool | None = None
    columns_option: str = "schema"


@dataclass(slots=True)
class RangeReport:
    """What reading one range took: sizes in bytes, times in seconds."""

    rows: int = 0
    fetched_bytes: int = 0
    fetch_s: float = 0.0
    decode_s: float = 0.0
    retries: int = 0
    passed_over: int = 0
    damaged: int = 0

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, {self.fetched_bytes} bytes, fetch {self.fetch_s:.3f} s, "
            f"decode {self.decode_s:.3f} s, {self.retries} retries, "
            f"{self.passed_over} offsets passed over, {self.damaged} batches damaged"
        )
