"""One partition's way out: batches that wait, that are in flight, that came back. Pure, no socket.

Order is kept whatever fails. A batch that fails comes back in front of all later ones, and nothing
more of its partition is sent until every batch in flight has come back or was written; then they
go out again in their order. With idempotence the broker refuses what would overtake; without it
there is one batch of a partition in flight at a time.

Protocol: KIP-98 (idempotent producer), KIP-360 (epoch bumps).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from pyspark_kafkaproto.client.writing.batches import Batch, Span, next_sequence
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.records import BatchBuilder, restamped

# A broker knows the last five batches of a producer, to tell a repeated one by.
_MOST_IN_FLIGHT = 5
_NO_SEQUENCE = -1
# After so long a silence a broker may have forgotten the producer (producer.id.expiration.ms).
_KNOWN_S = 600.0


class Identity(NamedTuple):
    """Who writes: producer id and epoch, -1 without idempotence; whether inside transactions."""

    producer_id: int = -1
    epoch: int = -1
    is_transactional: bool = False

    @property
    def is_idempotent(self) -> bool:
        """Whether batches carry sequence numbers."""
        return self.producer_id >= 0


@dataclass(slots=True)
class Written:
    """What was written to one partition.

    first_offset, last_offset: of the records written; -1 where the broker did not say (acks=0, or a
    batch that it had already). Other producers' records may lie between.
    retries: batches sent again. restarts: how often sequences began anew under the next epoch,
    because the broker no longer knew this producer, or because rows fell out.
    """

    records: int = 0
    batches: int = 0
    bytes: int = 0
    first_offset: int = -1
    last_offset: int = -1
    retries: int = 0
    restarts: int = 0

    def add(self, batch: Batch, base_offset: int) -> None:
        """Count a batch that was written."""
        self.records += batch.records
        self.batches += 1
        self.bytes += batch.size_bytes
        self.retries += batch.tries
        if base_offset >= 0:
            if self.first_offset < 0:
                self.first_offset = base_offset
            self.last_offset = max(self.last_offset, base_offset + batch.records - 1)

    def merge(self, other: Written) -> None:
        """Count what another producer, or this one later, wrote."""
        self.records += other.records
        self.batches += other.batches
        self.bytes += other.bytes
        self.retries += other.retries
        self.restarts += other.restarts
        known = [item for item in (self.first_offset, other.first_offset) if item >= 0]
        self.first_offset = min(known, default=-1)
        self.last_offset = max(self.last_offset, other.last_offset)


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The batches of one partition that are not yet written.

    Attributes:
        builder: the batch that is being filled, with the spans of its rows.
        opened_at: when its first row came.
        waiting: finished, never sent. returned: sent, and to be sent again. in_flight: sent.
        leader: None while it is to be looked up. deposed: the last one that was found to be none.
        paused_until: not sent again before that; a monotonic time.
        first_seen: when each failure was met first, by its text, since the last batch was written.
        limit_bytes: the size that its batches are filled to.
    """

    partition: TopicPartition
    identity: Identity
    limit_bytes: int
    topic_id: bytes | None = None
    leader: Leader | None = None
    deposed: Leader | None = None
    builder: BatchBuilder | None = None
    spans: list[Span] = field(default_factory=list)
    opened_at: float = 0.0
    waiting: deque[Batch] = field(default_factory=deque)
    returned: list[Batch] = field(default_factory=list)
    in_flight: deque[Batch] = field(default_factory=deque)
    paused_until: float = 0.0
    first_seen: dict[str, float] = field(default_factory=dict)
    failures_in_a_row: int = 0
    written: Written = field(default_factory=Written)
    _batches: int = 0
    _last_order: tuple[int, ...] = ()  # of the latest batch that was written
    _next_sequence: int = 0
    _expected: int = 0  # the sequence that the broker expects: of the first batch not written
    _known_until: float = 0.0  # the broker has written for this identity, and knows it till then
    has_failed: bool = False  # a batch came back while others were in flight
    is_shortened: bool = False  # rows fell out: what is in flight has sequences others are to have
    _is_misnumbered: bool = False  # sequences of what waits are no longer those to send
    _next_identity: Identity | None = None  # for batches from this place on
    _begins_anew_at: tuple[int, ...] = ()

    @property
    def head(self) -> Batch | None:
        """The batch to be sent next."""
        if self.returned:
            return self.returned[0]
        return self.waiting[0] if self.waiting else None

    def unsent(self) -> Iterator[Batch]:
        """Everything that is to be sent, in its order."""
        return chain(self.returned, self.waiting)

    @property
    def is_done(self) -> bool:
        """Whether every finished batch was written."""
        return not (self.waiting or self.returned or self.in_flight)

    def seal(self, builder: BatchBuilder) -> tuple[bytes, int, int]:
        """The next batch's bytes, number of records and base sequence; its builder begins anew."""
        records = builder.rows
        sequence = self._next_sequence if self.identity.is_idempotent else _NO_SEQUENCE
        data = builder.finish(
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=sequence,
            is_transactional=self.identity.is_transactional,
        )
        self._next_sequence = next_sequence(self._next_sequence, records)
        return data, records, sequence

    def next_order(self) -> tuple[int, ...]:
        """The place of the next batch."""
        self._batches += 1
        return (self._batches,)

    # Sending

    def is_led_by(self, endpoint: Endpoint) -> bool:
        """Whether its leader is known to be there."""
        return self.leader is not None and self.leader.endpoint == endpoint

    def depose(self, successor: Leader | None = None) -> None:
        """Its leader failed, or leads no more."""
        self.deposed, self.leader = self.leader or self.deposed, successor

    def doubts(self, leader: Leader) -> bool:
        """Whether one that metadata names is of the past, or the very one that has just failed."""
        return self.deposed is not None and leader.epoch <= self.deposed.epoch

    def can_send(self, now: float) -> bool:
        """Whether its head may go out."""
        if now < self.paused_until or self.head is None:
            return False
        if not self.in_flight:
            return True
        # A broker knows five batches: one that may be written already goes alone, or it would be
        # forgotten over those sent with it. So do parts of one, until one of them is written.
        if any(batch.tries or batch.doubtful for batch in (self.head, self.in_flight[-1])):
            return False
        if self.has_failed or self._is_misnumbered or self._begins_anew_with(self.head):
            return False
        return len(self.in_flight) < self._most_in_flight(now)

    def _most_in_flight(self, now: float) -> int:
        """One, until the broker knows the producer: it takes any sequence for a first one."""
        return _MOST_IN_FLIGHT if self.identity.is_idempotent and now < self._known_until else 1

    def take(self) -> Batch:
        """The head, in flight from now on."""
        self.has_failed = False
        if self.head is not None and self._begins_anew_with(self.head):
            self._begin_anew()
        if self._is_misnumbered:
            self._number_anew()
        batch = self.returned.pop(0) if self.returned else self.waiting.popleft()
        self.in_flight.append(batch)
        return batch

    def give_back(self, batch: Batch) -> None:
        """A batch in flight was not written: it goes first again, in its order."""
        self.in_flight.remove(batch)
        insort(self.returned, batch, key=lambda item: item.order)
        self.has_failed = True

    def deliver(self, batch: Batch, base_offset: int, now: float) -> None:
        """A batch in flight was written."""
        self.in_flight.remove(batch)
        self._known_until = now + _KNOWN_S
        if not self.is_passed(batch):
            self._last_order = batch.order
            self._expected = next_sequence(batch.base_sequence, batch.records)
        if len(batch.order) > 1:
            self._settle_doubts(batch)
        self.failures_in_a_row = 0
        self.first_seen.clear()
        self.written.add(batch, base_offset)

    def _settle_doubts(self, part: Batch) -> None:
        """A broker that took a part has none of what it is a part of."""
        for item in chain(self.in_flight, self.returned):
            if item.doubtful == part.order[: len(item.doubtful)]:
                item.doubtful = ()

    def excuse(self, delay_s: float) -> None:
        """Nobody was there to send: what has its time has so much more of it."""
        for batch in chain(self.in_flight, self.unsent()):
            if batch.deadline is not None:
                batch.deadline = batch.deadline.later(delay_s)
        self.first_seen = {text: seen + delay_s for text, seen in self.first_seen.items()}

    # What the broker refused

    def is_passed(self, batch: Batch) -> bool:
        """Whether a later batch was written: then, with idempotence, this one was before it."""
        return batch.order < self._last_order

    def overtaken_by(self, batch: Batch) -> Batch | None:
        """One before `batch`, which was written, that was certainly not.

        Only a broker that had forgotten the producer writes so: it takes any sequence for a first.
        """
        earlier = (item for item in self.returned if item.order < batch.order)
        return next((item for item in earlier if not item.may_be_written), None)

    def is_overtaking(self, batch: Batch) -> bool:
        """Whether a batch was refused only because one before it was."""
        return batch.base_sequence != self._expected

    @property
    def may_come_twice(self) -> bool:
        """Whether what is on its way could fit sequences that are given anew, as rows fell out.

        Then they need a new epoch, which what was sent before does not have.
        """
        is_sent = self.in_flight or any(batch.may_be_written for batch in self.returned)
        return bool(is_sent) and self.identity.is_idempotent

    def in_doubt_after(self, batch: Batch) -> Batch | None:
        """One behind `batch` that was sent, and that a broker may still write."""
        return next((item for item in self._returned_after(batch) if item.may_come), None)

    def doubted_after(self, batch: Batch) -> Batch | None:
        """One behind `batch` that may be written: another epoch would have it written again."""
        return next((item for item in self._returned_after(batch) if item.is_doubtful), None)

    def _returned_after(self, batch: Batch) -> Iterator[Batch]:
        return (item for item in self.returned if item.order > batch.order)

    def has_vanished(self, batch: Batch, parts: list[Batch]) -> bool:
        """Whether a broker may have `batch`, which `parts` are left of, with nothing to show it.

        Other parts of the one that it is a part of show that, where they come to its sequences.
        """
        if parts or not batch.is_doubtful or not self.identity.is_idempotent:
            return False
        others = [item for item in self.returned if item.doubtful == batch.doubtful]
        return not others or any(item.may_be_written for item in (batch, *others))

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Send `parts` in the place of a batch in flight: what is left of it, or its pieces."""
        self.in_flight.remove(batch)
        for part in parts:
            insort(self.returned, part, key=lambda item: item.order)
        self.has_failed = True
        self._is_misnumbered = self.identity.is_idempotent
        self.is_shortened |= sum(part.records for part in parts) < batch.records

    def pass_over(self, batch: Batch) -> bool:
        """Go on behind a batch that may be written and that nothing is left of, as if it were.

        What comes next keeps its sequences: a broker takes them, or has them, if it has that batch.
        Else it refuses them, and those begin anew. False where they are to begin anew already.
        """
        if self._next_identity is not None:
            return False
        self._expected = next_sequence(batch.base_sequence, batch.records)
        return True

    def restart(self, identity: Identity, place: tuple[int, ...]) -> None:
        """Begin sequences anew under `identity`, from that place (`Batch.order`) on.

        What comes before it may be written already: only under its own epoch and sequence does a
        broker know it again. All of that is settled first.
        """
        is_waiting = self._next_identity is not None
        self._begins_anew_at = min(self._begins_anew_at, place) if is_waiting else place
        self._next_identity = identity
        self._is_misnumbered = True

    def _begins_anew_with(self, batch: Batch) -> bool:
        return self._next_identity is not None and batch.order >= self._begins_anew_at

    def _begin_anew(self) -> None:
        assert self._next_identity is not None  # noqa: S101 - who calls this has looked
        self.identity, self._next_identity = self._next_identity, None
        self._expected = 0
        self._known_until = 0.0
        self._is_misnumbered = True
        self.written.restarts += 1

    def _number_anew(self) -> None:
        """Sequences of what is finished and of this identity, from the one the broker expects."""
        sequence = self._expected
        for batch in self.unsent():
            if self._begins_anew_with(batch):
                break
            if self.is_passed(batch):  # sent again to hear its offset, and not to be written
                continue
            batch.base_sequence = sequence
            batch.data = restamped(
                batch.data,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=sequence,
                is_transactional=self.identity.is_transactional,
            )
            sequence = next_sequence(sequence, batch.records)
        self._next_sequence = sequence
        self._is_misnumbered = self.is_shortened = False
