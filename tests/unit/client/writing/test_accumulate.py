"""Open batches: how much of the rows is held before somebody waits for the brokers."""

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import ProducerRecord
from pyspark_kafkaproto.client.writing.refusals import RecordRefused
from tests.fake_produce import values

MEMORY = 1 << 17
VALUE_BYTES = 1000


def rows_of(count, partitions):
    """One Arrow batch, its rows in turn for each partition."""
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([bytes(VALUE_BYTES)] * count, pa.binary()),
            "partition": pa.array([n % partitions for n in range(count)], pa.int32()),
        }
    )


@pytest.fixture
def held_bytes(monkeypatch):
    """What is held for brokers after each finished batch of a producer."""
    seen = []

    def watch(writer):
        sender = writer._sender
        offer = sender.offer

        def offered(queue, batch):
            offer(queue, batch)
            seen.append(sender.held_bytes)

        monkeypatch.setattr(sender, "offer", offered)
        return seen

    return watch


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("letters", [None, "many"], ids=["no letters", "letters"])
def test_one_arrow_batch_holds_no_more_than_buffer_memory(
    brokers, producer, held_bytes, letters, partitions
):
    writer = producer(
        buffer_memory=MEMORY,
        batch_size=10_000,
        max_request_size=20_000,
        dead_letter_topic=letters,
    )
    seen = held_bytes(writer)
    writer.send(rows_of(1000, partitions))
    written = writer.flush()
    assert max(seen) <= MEMORY
    assert sum(item.records for item in written.values()) == 1000
    assert sum(len(values(log)) for log in brokers.logs.values()) == 1000


@pytest.mark.slow
def test_open_batches_of_many_partitions_are_within_buffer_memory_too(
    brokers, producer, held_bytes
):
    """The batch that is finished is of another partition than those that have to be."""
    writer = producer("many", buffer_memory=MEMORY, batch_size=20_000, max_request_size=40_000)
    seen = held_bytes(writer)
    for count in (250, 250):
        writer.send(rows_of(count, 250))
    writer.send(rows_of(500, 1))
    written = writer.flush()
    assert max(seen) <= MEMORY
    assert sum(item.records for item in written.values()) == 1000
    assert len(values(brokers.logs["many", 0])) == 502


def test_batches_that_were_finished_take_no_room_of_open_ones(brokers, producer):
    writer = producer(buffer_memory=MEMORY, linger_ms=60_000)
    for _ in range(10):
        writer.send(rows_of(20, 2))
        writer.flush()
    before = len(brokers.asked("Produce"))
    writer.send(rows_of(2, 2))
    assert writer._sender.held_bytes == 0, "they stay open"
    assert len(brokers.asked("Produce")) == before
    writer.flush()
    assert len(values(brokers.logs["orders", 0])) == 101


def test_a_record_of_just_max_request_size_is_written_and_no_larger_one(brokers, producer):
    most = 500
    writer = producer(max_request_size=most, batch_size=100)
    fits = most - 70  # the headers of a batch and of its record take so much
    writer.send([ProducerRecord("x" * fits, partition=0)])
    writer.flush()
    (batch,) = brokers.logs["orders", 0].batches
    assert len(batch.data) == most
    with pytest.raises(RecordRefused, match=f"takes {most + 1} bytes, max.request.size is {most}"):
        writer.send([ProducerRecord("x" * (fits + 1), partition=0)])
