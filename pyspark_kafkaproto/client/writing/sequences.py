"""Whom and which sequences the batches of one partition are written under. Pure.

A broker takes the batch whose sequence follows on the last one that it has, and knows by its
sequence one that it has already. What was sent keeps its sequence as long as it may be written.
Where rows fell out, or the broker no longer knows the producer, what is left is numbered anew:
behind what is written, or from 0 on under the next epoch.

Protocol: KIP-98 (idempotent producer), KIP-360 (epoch bumps).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_kafkaproto.client.writing.batches import Batch, next_sequence
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
class Sequences:
    """The sequences of one partition's batches, and whose they are.

    Attributes:
        identity: who writes.
        is_shortened: rows fell out: what is in flight has sequences that others are to have.
        is_misnumbered: sequences of what waits are no longer those to send.
    """

    identity: Identity
    is_shortened: bool = False
    is_misnumbered: bool = False
    _next: int = 0  # of the batch that is sealed next
    _expected: int = 0  # by the broker: of the first batch that is not written
    _known_until: float = 0.0  # the broker has written for this identity, and knows it till then
    _next_identity: Identity | None = None  # for batches from this place on
    _begins_anew_at: tuple[int, ...] = ()

    def seal(self, builder: BatchBuilder) -> tuple[bytes, int, int]:
        """The next batch's bytes, number of records and base sequence; its builder begins anew."""
        records = builder.rows
        sequence = self._next if self.identity.is_idempotent else _NO_SEQUENCE
        data = builder.finish(
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=sequence,
            is_transactional=self.identity.is_transactional,
        )
        self._next = next_sequence(self._next, records)
        return data, records, sequence

    def most_in_flight(self, now: float) -> int:
        """One, until the broker knows the producer: it takes any sequence for a first one."""
        return _MOST_IN_FLIGHT if self.identity.is_idempotent and now < self._known_until else 1

    def note_known(self, now: float) -> None:
        """The broker has just written for this identity."""
        self._known_until = now + _KNOWN_S

    def go_on_behind(self, batch: Batch) -> None:
        """The broker has `batch`, and none that comes after it."""
        self._expected = next_sequence(batch.base_sequence, batch.records)

    def pass_over(self, batch: Batch) -> bool:
        """Go on behind a batch that may be written and that nothing is left of, as if it were.

        What comes next keeps its sequences: a broker takes them, or has them, if it has that batch.
        Else it refuses them, and those begin anew. False where they are to begin anew already.
        """
        if self._next_identity is not None:
            return False
        self.go_on_behind(batch)
        return True

    def is_overtaking(self, batch: Batch) -> bool:
        """Whether a batch was refused only because one before it was."""
        return batch.base_sequence != self._expected

    def note_replaced(self, *, is_shorter: bool) -> None:
        """Others have come in the place of a batch, with all of its rows or without some."""
        self.is_misnumbered = self.identity.is_idempotent
        self.is_shortened |= is_shorter

    def restart(self, identity: Identity, place: tuple[int, ...]) -> None:
        """Begin anew under `identity`, from that place (`Batch.order`) on.

        What comes before it may be written already: only under its own epoch and sequence does a
        broker know it again. All of that is settled first.
        """
        is_waiting = self._next_identity is not None
        self._begins_anew_at = min(self._begins_anew_at, place) if is_waiting else place
        self._next_identity = identity
        self.is_misnumbered = True

    def begins_anew_with(self, batch: Batch) -> bool:
        """Whether a batch is from the place on that `restart` said."""
        return self._next_identity is not None and batch.order >= self._begins_anew_at

    def begin_anew(self) -> None:
        """Nothing before that place is left: who writes from here on is the next identity."""
        assert self._next_identity is not None  # noqa: S101 - who calls this has looked
        self.identity, self._next_identity = self._next_identity, None
        self._expected = 0
        self._known_until = 0.0
        self.is_misnumbered = True

    def number_anew(self, batches: Iterable[Batch]) -> None:
        """Sequences of those of this identity, from the one that the broker expects.

        Args:
            batches: what is to be written yet, in its order.
        """
        sequence = self._expected
        for batch in batches:
            if self.begins_anew_with(batch):
                break
            batch.base_sequence = sequence
            batch.data = restamped(
                batch.data,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=sequence,
                is_transactional=self.identity.is_transactional,
            )
            sequence = next_sequence(sequence, batch.records)
        self._next = sequence
        self.is_misnumbered = self.is_shortened = False
