"""Batches of unknown outcome that a broker refuses the next time, in any mixture.

Brokers look at sizes and timestamps before they look whether they have a batch: so one that is
written may be refused, halved, or put aside in part. Whatever comes of it, nothing is twice, in
another order, or lost without a word.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyspark_kafkaproto.client import ProducerRecord
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.records.layout import HEADER
from tests.examples import first, marked
from tests.fake_broker import FakeTopic, close, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_produce import come_up_again, produce, refusing, values, values_in

NOT_LEADER, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP = 6, 7, 10, 32
MOST_FAULTS = 40


@dataclass(frozen=True)
class Mixture:
    """What may happen, and how often: `limits` are bytes of a batch, `shares` of 1."""

    most_rows: int
    latest_onset: int
    limits: tuple[int, ...]
    bad_share: float
    fault_shares: tuple[float, ...]
    restart_share: float = 0.0


USUAL = Mixture(12, 8, (10**6, 160, 120, 100), 0.25, (0.2, 0.4, 0.6))
DENSE = Mixture(6, 4, (10**6, 100, 75, 72), 0.5, (0.5, 0.7))
RESTARTED = Mixture(12, 8, (10**6, 10**6, 160, 100), 0.05, (0.2, 0.4, 0.6), 0.3)


@dataclass
class Leader:
    """A leader that fails as one draw of a mixture says, from its second request on."""

    brokers: Any
    mixture: Mixture
    seed: int
    asked: int = 0
    late: list[Any] = field(default_factory=list)  # requests that may be written at any time
    trace: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)
        draw = self.source
        self.rows = draw.randint(1, self.mixture.most_rows)
        bad = (n for n in range(1, self.rows + 1) if draw.random() < self.mixture.bad_share)
        self.bad = {f"{n}".encode() for n in bad}
        self.onset = draw.randint(0, self.mixture.latest_onset)
        self.limit = draw.choice(self.mixture.limits)
        self.fault_share = draw.choice(self.mixture.fault_shares)

    def answer(self, call: Any) -> Any:
        if call.request.topic_data[0].name == "letters":
            return produce(self.brokers, call)
        self.asked += 1
        if self.mixture.restart_share and self.source.random() < self.mixture.restart_share:
            come_up_again(self.brokers.logs["orders", 0])
        (item,) = call.request.topic_data[0].partition_data
        data = bytes(item.records)
        held = values_in(data)
        if self.late and self.source.random() < 0.4:
            produce(self.brokers, self.late.pop(0))
            self.trace.append(("late", values(self.brokers.logs["orders", 0])))
        fate, answer = self._fate(call, data, held)
        self.trace.append((HEADER.unpack_from(data)[9:13], held, fate))
        return answer

    def _fate(self, call: Any, data: bytes, held: list[bytes]) -> tuple[str, Any]:
        if self.asked > self.onset + 1 and len(data) > self.limit:
            return "too large", refusing(MESSAGE_TOO_LARGE)(call)
        if self.asked > self.onset + 1 and self.bad & set(held):
            return "bad rows", refusing(INVALID_TIMESTAMP, record_errors=self._named(held))(call)
        is_sound = self.asked == 1 or self.asked > MOST_FAULTS
        if is_sound or self.source.random() >= self.fault_share:
            return "answered", produce(self.brokers, call)
        fate = self.source.choice(["written", "lost", "timed out", "not leader", "late"])
        return fate, self._answer_to(fate, call)

    def _answer_to(self, fate: str, call: Any) -> Any:
        if fate == "not leader":
            return refusing(NOT_LEADER)(call)
        if fate == "late":
            self.late.append(call)
        elif fate != "lost":
            answer = produce(self.brokers, call)
            if fate == "timed out":
                refused = answer.responses[0].partition_responses[0].error_code
                return answer if refused else refusing(REQUEST_TIMED_OUT)(call)
        return close()

    def _named(self, held: list[bytes]) -> tuple[Any, ...]:
        """Which rows are bad, as half of the brokers say it."""
        if self.seed % 2 == 0:
            return ()
        named = ProduceResponse.Topic.Partition.RecordError
        return tuple(
            named(batch_index=row, batch_index_error_message="bad")
            for row, value in enumerate(held)
            if value in self.bad
        )


def seeds(count):
    """A few for each run, many for a long one."""
    return [*first(3, range(count // 20)), *marked("long", range(count // 20, count))]


@pytest.mark.parametrize("mixture", [USUAL, DENSE, RESTARTED], ids=["usual", "dense", "restarted"])
@pytest.mark.parametrize("seed", seeds(3000))
def test_nothing_is_written_twice_in_another_order_or_lost(brokers, producer, mixture, seed):
    brokers.topics["letters"] = FakeTopic(topic_id_of("letters"), [1], [0])
    letters = brokers.logs["letters", 0] = FakeLog()
    leader = Leader(brokers, mixture, seed)
    brokers.on("Produce", leader.answer)
    batch_size = leader.source.choice([75, 80, 90, 110, 2000])
    quick = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2}
    writer = producer(dead_letter_topic="letters", batch_size=batch_size, **quick)
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, leader.rows + 1)])
    raised = None
    try:
        writer.flush()
    except KafkaProtoError as error:
        raised = error
    found = [int(value) for value in values(brokers.logs["orders", 0])]
    aside = {int(value) for value in values(letters)}
    assert len(found) == len(set(found)), (raised, leader.trace)
    assert found == sorted(found), (raised, leader.trace)
    assert raised or set(found) | aside == set(range(leader.rows + 1)), leader.trace
