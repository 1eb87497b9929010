"""Record batches on their way to a broker, and which of the rows that were sent are in them. Pure.

Rows are numbered from 0 in the order in which they were given to the producer, so that an error
names the row that its user knows. The numbers of a batch's rows are worked out only for an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.net import Deadline

# Different errors of one batch that its last one tells of.
_MOST_FAILURES = 10


class Rows(NamedTuple):
    """The rows of one Arrow batch: `first` is the number of its row 0.

    numbers: int32, each row's number counted from `first`, where the batch holds rows picked from
    a larger one.
    """

    first: int
    numbers: memoryview | None = None

    def number(self, row: int) -> int:
        """The number of the batch's `row`."""
        return self.first + (row if self.numbers is None else self.numbers[row])


class Span(NamedTuple):
    """Rows `indices[start:stop]` (None: start … stop) of one Arrow batch, in a record batch."""

    rows: Rows
    indices: memoryview | None
    start: int
    stop: int

    def numbers(self) -> Iterator[int]:
        """Their numbers."""
        for position in range(self.start, self.stop):
            yield self.rows.number(position if self.indices is None else self.indices[position])

    def bounds(self) -> tuple[int, int]:
        """The least and the largest of them; there may be ten thousands."""
        if self.rows.numbers is not None:
            numbers = list(self.numbers())
            return min(numbers), max(numbers)
        if self.indices is None:
            return self.rows.number(self.start), self.rows.number(self.stop - 1)
        picked = self.indices[self.start : self.stop]
        return self.rows.number(min(picked)), self.rows.number(max(picked))


def span_of(numbers: Iterable[int]) -> Span:
    """A span of rows that are known by their numbers alone."""
    known = memoryview(array("q", numbers))
    return Span(Rows(0, known), None, 0, len(known))


@dataclass(slots=True, eq=False)
class Batch:
    """A finished record batch of one partition.

    Attributes:
        order: its place among the batches of its partition; what it is split into comes where it
            was.
        base_sequence: of its first record; -1 without idempotence.
        deadline: by when it has to be delivered (delivery.timeout.ms). None until the first try:
            while no rows come nobody sends what waits, and that is no broker's fault.
        tries: how often it was sent and failed.
        may_be_written: of one of those tries nobody knows how it ended.
        may_come: one of those was never answered: a broker may write it at any time.
        doubtful: the place of the one that it is a part of and that may be written, of several the
            smallest; empty for none. A broker that has that one does not know it again by the
            sequences of this one.
        overtaken_by: a later one that was written where this one would have to be; None for none.
        hang_ups: how often in a row its connection was ended instead of an answer. asked_bytes: the
            largest request that was under way then, at the last time.
        failures: what was tried and how it ended, different ones only.
    """

    data: bytes
    records: int
    order: tuple[int, ...]
    base_sequence: int
    spans: list[Span]
    deadline: Deadline | None = None
    tries: int = 0
    may_be_written: bool = False
    may_come: bool = False
    doubtful: tuple[int, ...] = ()
    overtaken_by: Batch | None = None
    hang_ups: int = 0
    asked_bytes: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """As it is sent."""
        return len(self.data)

    def tried_within(self, timeout_s: float) -> Deadline:
        """The end of its tries; the first one begins now at the latest."""
        if self.deadline is None:
            self.deadline = Deadline.after(timeout_s)
        return self.deadline

    @property
    def is_overdue(self) -> bool:
        """Whether it was tried, and may be no longer."""
        return self.deadline is not None and self.deadline.has_passed

    @property
    def is_doubtful(self) -> bool:
        """Whether its records may be written already, also those of it alone."""
        return self.may_be_written or bool(self.doubtful)

    def part(self, index: int, data: bytes, numbers: Iterable[int]) -> Batch:
        """One that comes in its place, the `index`th of perhaps several.

        Args:
            index: its place among those.
            data: the record batch.
            numbers: of its rows.
        """
        span = span_of(numbers)
        return Batch(
            data=data,
            records=span.stop,
            order=(*self.order, index),
            base_sequence=self.base_sequence,
            spans=[span],
            doubtful=self.order if self.may_be_written else self.doubtful,
        )

    def note(self, error: KafkaProtoError, *, was_sent: bool = True) -> None:
        """Remember a try that failed; one that never left this machine is none of `retries`."""
        self.tries += was_sent
        text = str(error)
        if text not in self.failures and len(self.failures) < _MOST_FAILURES:
            self.failures.append(text)

    def note_hang_up(self, asked_bytes: int | None) -> None:
        """Of a try that failed: the largest request under way on a connection that was ended.

        None: it was answered, or nobody took connections.
        """
        self.hang_ups = 0 if asked_bytes is None else self.hang_ups + 1
        self.asked_bytes = asked_bytes or 0

    def row_numbers(self) -> list[int]:
        """The number of each record's row, in the order of the records."""
        return [number for span in self.spans for number in span.numbers()]

    def __str__(self) -> str:
        least, largest = zip(*(span.bounds() for span in self.spans), strict=True)
        rows = f"row {min(least)}"
        if self.records > 1:
            rows = f"{self.records} rows, {min(least)} to {max(largest)}"
        return f"{rows} ({self.size_bytes} bytes)"


def next_sequence(sequence: int, records: int) -> int:
    """The sequence number after `records` records from `sequence` on: they wrap at 2³¹ (KIP-98)."""
    return (sequence + records) & 0x7FFFFFFF
