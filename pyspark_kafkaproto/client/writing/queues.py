"""One partition's way out: batches that wait, that are in flight, that came back. Pure, no socket.

Order is kept whatever fails. A batch that fails comes back in front of all later ones, and nothing
more of its partition is sent until every batch in flight has come back or was written; then they
go out again in their order. With idempotence the broker refuses what would overtake; without it
there is one batch of a partition in flight at a time.

Which sequences they go under is `sequences`'.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, takewhile

from pyspark_kafkaproto.client.writing.batches import Batch, Span
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.records import BatchBuilder


@dataclass(slots=True)
class Written:
    """What was written to one partition.

    first_offset, last_offset: of the records written; -1 where the broker did not say (acks=0, or a
    batch that it had already, and no longer knew where). Other producers' records may lie between.
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
    _is_vague: bool = field(default=False, repr=False)  # of some no offset is known

    def add(self, batch: Batch, base_offset: int) -> None:
        """Count a batch that was written."""
        self.records += batch.records
        self.batches += 1
        self.bytes += batch.size_bytes
        self.retries += batch.tries
        self._is_vague |= base_offset < 0
        if base_offset >= 0:
            # Not in the order of the offsets: one that timed out is heard of when it is sent again.
            if self.first_offset < 0 or base_offset < self.first_offset:
                self.first_offset = base_offset
            self.last_offset = max(self.last_offset, base_offset + batch.records - 1)
        if self._is_vague:  # those of unknown offset lie before others
            self.first_offset = -1

    def merge(self, other: Written) -> None:
        """Count what another producer, or this one later, wrote."""
        self.records += other.records
        self.batches += other.batches
        self.bytes += other.bytes
        self.retries += other.retries
        self.restarts += other.restarts
        self._is_vague |= other._is_vague
        known = [item for item in (self.first_offset, other.first_offset) if item >= 0]
        self.first_offset = -1 if self._is_vague else min(known, default=-1)
        self.last_offset = max(self.last_offset, other.last_offset)


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The batches of one partition that are not yet written.

    Attributes:
        sequences: whom and which sequences its batches are written under.
        builder: the batch that is being filled, with the spans of its rows.
        opened_at: when its first row came.
        waiting: finished, never sent. returned: sent, and to be sent again. in_flight: sent.
        leader: None while it is to be looked up. deposed: the last one that was found to be none.
        paused_until: not sent again before that; a monotonic time.
        first_seen: when each failure was met first, by its text, since the last batch was written.
        limit_bytes: the size that its batches are filled to.
        witnesses: returned ones that go before all others, see `call_witnesses`.
    """

    partition: TopicPartition
    sequences: Sequences
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
    has_failed: bool = False  # a batch came back while others were in flight
    written: Written = field(default_factory=Written)
    witnesses: list[Batch] = field(default_factory=list)
    _asked_about: Batch | None = None  # the last one that witnesses were called for
    _batches: int = 0
    _last_order: tuple[int, ...] = ()  # of the latest batch that was written
    _stop: int = 0  # the offset behind it, or behind one before it

    @property
    def identity(self) -> Identity:
        """Who writes."""
        return self.sequences.identity

    @property
    def head(self) -> Batch | None:
        """The batch to be sent next."""
        if self.witnesses:
            return self.witnesses[0]
        if self.returned:
            return self.returned[0]
        return self.waiting[0] if self.waiting else None

    def unsent(self) -> Iterator[Batch]:
        """Everything that is to be sent, in its order."""
        return chain(self.returned, self.waiting)

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
        self._dismiss_witnesses()  # another one may know more

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
        sequences = self.sequences
        if self.has_failed or sequences.is_misnumbered or sequences.begins_anew_with(self.head):
            return False
        return len(self.in_flight) < sequences.most_in_flight(now)

    def take(self) -> Batch:
        """The head, in flight from now on."""
        self.has_failed = False
        batch = self.head
        assert batch is not None  # noqa: S101 - who calls this has looked
        if self.sequences.begins_anew_with(batch):
            self.sequences.begin_anew()
            self.written.restarts += 1
        if self.sequences.is_misnumbered:
            # One that is passed is sent again to hear its offset, and not to be written.
            self.sequences.number_anew(item for item in self.unsent() if not self.is_passed(item))
        if self.returned:
            self.returned.remove(batch)
        else:
            self.waiting.popleft()
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
        self._dismiss_witnesses()
        self.sequences.note_known(now)
        if not self.is_passed(batch):
            self._suspect_earlier(batch, base_offset)
            self._last_order = batch.order
            if base_offset >= 0:
                self._stop = base_offset + batch.records
            self.sequences.go_on_behind(batch)
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

    def _suspect_earlier(self, batch: Batch, base_offset: int) -> None:
        """Those before `batch` may be written, but its offset leaves no room for them.

        They are not, or offsets have gone back (a topic made again, a log cut off): what the broker
        says to them, sent again, shows which.
        """
        earlier = [item for item in self.returned if self._last_order < item.order < batch.order]
        if 0 <= base_offset < self._stop + sum(item.records for item in earlier):
            for item in earlier:
                item.overtaken_by = batch

    @property
    def may_come_twice(self) -> bool:
        """Whether what is on its way could fit sequences that are given anew, as rows fell out.

        Then they need a new epoch, which what was sent before does not have.
        """
        is_sent = self.in_flight or any(batch.may_be_written for batch in self.returned)
        return bool(is_sent) and self.identity.is_idempotent

    def coming_after(self, batch: Batch) -> Batch | None:
        """One behind `batch` that was sent, and that a broker may still write."""
        return next((item for item in self._returned_after(batch) if item.may_come), None)

    def doubtful_after(self, batch: Batch) -> Batch | None:
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

    def can_call_witnesses(self, batch: Batch) -> bool:
        """Whether `call_witnesses` may tell more of a batch that may be written."""
        is_new = self._asked_about is not batch and not self.sequences.is_misnumbered
        return is_new and bool(self._sent_behind(batch))

    def call_witnesses(self, batch: Batch) -> None:
        """Send those first that were sent behind `batch`, and may be written, the latest first.

        A broker that has come up again knows a producer's last batch alone, and says of those
        before it that they are out of order, as it does of what it never had. Of that last one it
        says that it is written, or of the one after it takes it: then all before it are written.
        Where it has none of them, it has not got `batch` either.
        """
        self._asked_about = batch
        self.witnesses = self._sent_behind(batch)[::-1]

    def dismiss(self, batch: Batch) -> None:
        """The broker does not have this one, nor what would come before it."""
        if batch in self.witnesses:
            self.witnesses.remove(batch)

    def _dismiss_witnesses(self) -> None:
        self.witnesses, self._asked_about = [], None

    def _sent_behind(self, batch: Batch) -> list[Batch]:
        """What follows on it without a gap and may be written, under the same identity."""

        def is_sent(item: Batch) -> bool:
            is_whole = item.may_be_written and not item.doubtful
            return is_whole and not self.sequences.begins_anew_with(item)

        return list(takewhile(is_sent, self._returned_after(batch)))

    def has_parts_behind(self, batch: Batch) -> bool:
        """Whether there are parts behind `batch` of one that may be written."""
        return any(item.doubtful for item in self._returned_after(batch))

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Send `parts` in the place of a batch in flight: what is left of it, or its pieces."""
        self.in_flight.remove(batch)
        for part in parts:
            insort(self.returned, part, key=lambda item: item.order)
        left = sum(part.records for part in parts)
        self.sequences.note_replaced(is_shorter=left < batch.records)
