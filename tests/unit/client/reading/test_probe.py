"""How many bytes an offset takes: as in its whole batch, and found by few bytes."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.reading.probe import probe_bytes_per_offset
from pyspark_kafkaproto.cluster import TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def filled(brokers):
    """Large batches in one partition, small ones in the other: 10 records each."""
    brokers.logs["orders", 0].fill(20, size_bytes=300)
    brokers.logs["orders", 1].fill(20, size_bytes=30)
    return brokers


def a_tenth(brokers, partition):
    return len(brokers.logs["orders", partition].batches[0].data) / 10


@pytest.mark.parametrize("start", [0, 50, 57])
def test_an_offset_takes_what_it_takes_in_its_whole_batch(filled, config, task, start):
    found = probe_bytes_per_offset(task((0, start, 200), (1, start, 200)), config())
    assert found == {
        FIRST: pytest.approx(a_tenth(filled, 0)),
        SECOND: pytest.approx(a_tenth(filled, 1)),
    }


def test_a_look_takes_little_whatever_a_read_may_take(filled, config, task):
    probe_bytes_per_offset(task((0, 0, 200)), config(max_partition_fetch_bytes=1 << 20))
    (request,) = filled.asked("Fetch")
    assert request.topics[0].partitions[0].partition_max_bytes == 16 << 10


def test_ranges_without_a_start_are_left_out(filled, config, task):
    found = probe_bytes_per_offset(task((0, None, 200), (1, 20, 200)), config())
    assert found.keys() == {SECOND}


def test_of_what_is_damaged_nothing_is_known(filled, config, task, caplog):
    """Whoever reads it fails by that, or passes over it, as it is told to."""
    batch = filled.logs["orders", 0].batches[0]
    filled.logs["orders", 0].batches[0] = batch._replace(data=b"\xff" * len(batch.data))
    found = probe_bytes_per_offset(task((0, 0, 200), (1, 0, 200)), config())
    assert found.keys() <= {SECOND}
    assert "the size of records is not known everywhere: " in caplog.text
