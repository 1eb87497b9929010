"""The rows of a member: damaged ones, parts of chunks, and offsets that transactions hold."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto import arrow
from pyspark_kafkaproto.client import consumer as consumer_module
from pyspark_kafkaproto.client.group import reading
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.errors import (
    BrokerError,
    CorruptRecords,
)
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.fake_log import Batch
from tests.unit.client.group.fake_group import beats
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of
from tests.unit.cluster.committing import (
    FakeCoordinator,
    unstable,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOBODY = -1
UNSTABLE_OFFSET_COMMIT = 88
REBALANCE_IN_PROGRESS = 27


@pytest.mark.slow
def test_damaged_records_are_an_error_at_every_poll_and_stay_unread(filled, group, consumer_of):
    whole = filled.logs["orders", 0].batches[1]
    damaged = whole.data[:-1] + bytes([whole.data[-1] ^ 1])
    filled.logs["orders", 0].batches[1] = Batch(damaged, whole.next_offset)
    group.committed["orders", 1] = (20, "")
    consumer = consumer_of()
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10)]
    for _ in range(2):
        with pytest.raises(CorruptRecords, match="orders-0"):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions[FIRST] == 10
    filled.logs["orders", 0].batches[1] = whole
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10, 20)]


@pytest.mark.slow
def test_what_gives_no_row_is_passed_beside_damaged_records(filled, group, consumer_of):
    """A position that moves over no row is not taken back with the error of another partition."""
    first, second = (filled.logs["orders", number].batches for number in range(2))
    marker = encode_batch([NewRecord(bytes(30), key=bytes(4))] * 10, attributes=1 << 5)
    first[0] = Batch(marker, first[0].next_offset)
    second[0] = Batch(second[0].data[:-1] + b"?", second[0].next_offset)
    consumer, rows = consumer_of(max_partition_fetch_bytes=300), []
    for _ in range(10):
        with suppress(CorruptRecords):
            rows += rows_of(consumer.poll(PATIENCE_S))
    assert set(rows) == {(0, offset) for offset in range(10, 20)}


@pytest.fixture(params=["max.poll.records", pytest.param("names", marks=pytest.mark.slow)])
def of_few_rows(request, consumer_of, monkeypatch):
    """A consumer whose batches have at most three rows.

    It was told so, or a chunk of many small rows is cut where the topic's name would take too much
    beside them.
    """
    if request.param == "max.poll.records":
        return consumer_of(enable_auto_commit="false", max_poll_records=3)
    monkeypatch.setattr(arrow, "TOPIC_BYTES", 3 * len("orders"))
    monkeypatch.setattr(arrow._topics, "_kept", None)
    return consumer_of(enable_auto_commit="false")


def test_positions_move_with_each_of_the_batches_that_a_chunk_is(filled, group, of_few_rows):
    rows = []
    while len(rows) < 40:
        batch = of_few_rows.poll(PATIENCE_S)
        if batch is None:  # it joins yet
            continue
        rows += batch.to_pylist()
        assert batch.num_rows <= 3
        last, positions = rows[-1], of_few_rows.positions
        assert positions[TopicPartition("orders", last["partition"])] == last["offset"] + 1
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset) for partition in (0, 1) for offset in range(20)
    ]


def test_the_rest_of_a_chunk_comes_again_where_its_rows_were_not_taken(filled, group, consumer_of):
    """What was fetched is given up with the partitions, and its positions are those of rows."""
    consumer = consumer_of(enable_auto_commit="false", max_poll_records=7)
    assert poll_rows(consumer, 7) == [(0, offset) for offset in range(7)]
    consumer.commit()
    consumer.close()
    assert group.committed["orders", 0] == (7, "")
    assert poll_rows(consumer_of(max_poll_records=7), 33)[:13] == [
        (0, offset) for offset in range(7, 20)
    ]


@pytest.mark.slow
def test_rows_wait_for_the_transaction_that_holds_the_offsets(filled, group, consumer_of, caplog):
    """Its producer may have died: no error, as it ends by its time-out."""
    filled.on("OffsetFetch", unstable)
    consumer = consumer_of(default_api_timeout_ms=250)
    poll_until(consumer, lambda: "open transaction" in caplog.text, "the warning")
    assert consumer.poll(0) is None
    FakeCoordinator(filled, g={("orders", 0): (7, ""), ("orders", 1): (20, "")})
    assert poll_rows(consumer, 13) == [(0, offset) for offset in range(7, 20)]


@pytest.mark.slow
def test_a_transaction_that_holds_the_offsets_holds_no_poll_up(filled, group, consumer_of, caplog):
    filled.on("OffsetFetch", unstable)
    consumer = consumer_of(retry_backoff_ms=50)
    began = time.monotonic()
    poll_until(consumer, lambda: len(filled.asked("OffsetFetch")) == 3, "questions")
    assert consumer.poll(0) is None
    assert 0.1 < time.monotonic() - began < 2.5, "each poll is short, the coordinator has a rest"
    beats(filled, REBALANCE_IN_PROGRESS)
    poll_until(consumer, lambda: group.generation == 2, "the next generation")
    group.committed |= {("orders", 0): (7, ""), ("orders", 1): (20, "")}
    FakeCoordinator(filled, g=group.committed)
    assert rows_of(consumer.poll(PATIENCE_S)) == [(0, offset) for offset in range(7, 20)]
    assert not caplog.records


def test_offsets_that_are_held_once_more_are_a_wait_of_their_own(
    filled, group, consumer_of, monkeypatch
):
    """Else it would be said at once, and asked about as seldom as the last one at its end."""
    consumer = consumer_of(retry_backoff_ms=1, retry_backoff_max_ms=1)
    held = BrokerError(UNSTABLE_OFFSET_COMMIT, "OffsetFetch", "group g")
    answers = iter([held, held, {}, held])

    def answer(*_, **__):
        found = next(answers)
        if isinstance(found, BrokerError):
            raise found
        return found

    monkeypatch.setattr(consumer_module, "starting_positions", answer)
    found = []
    for _ in range(4):
        starts = consumer._starting_positions(frozenset({FIRST}), GroupMember("m", 1))
        found.append((starts, consumer._held.tries))
        time.sleep(0.01)  # more than the rest that is given to the coordinator
    assert found == [(None, 1), (None, 2), ({}, 0), (None, 1)]


@pytest.mark.slow
def test_a_transaction_that_holds_offsets_keeps_no_other_partition_waiting(
    filled, group, consumer_of, monkeypatch
):
    """Of partitions that nobody led when the others began."""
    monkeypatch.setattr(reading, "_LOOK_AGAIN_S", 0.05)
    group.committed["orders", 1] = (0, "")
    filled.topics["orders"].leaders[0] = NOBODY
    consumer = consumer_of()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    asked = len(filled.asked("OffsetFetch"))
    filled.on("OffsetFetch", unstable)
    filled.topics["orders"].leaders[0] = 1
    poll_until(consumer, lambda: len(filled.asked("OffsetFetch")) > asked, "the question")
    filled.logs["orders", 1].append(b"later")
    began = time.monotonic()
    assert poll_rows(consumer, 1) == [(1, 20)]
    assert time.monotonic() - began < 2.5
    FakeCoordinator(filled, g=group.committed)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
def test_rows_that_found_no_memory_come_again_and_are_not_committed(
    filled, group, consumer_of, monkeypatch
):
    def fail(*_):
        raise MemoryError

    consumer = consumer_of()
    with monkeypatch.context() as patched:
        patched.setattr(reading, "to_record_batches", fail)
        with pytest.raises(MemoryError):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions == {FIRST: 0, SECOND: 0}
    assert len(poll_rows(consumer, 40)) == 40
