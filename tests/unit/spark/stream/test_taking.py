"""How far a batch goes that is limited by bytes."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.limits import MOST, StreamLimits
from pyspark_kafkaproto.spark.stream.taking import Taking

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class FakeTail:
    """Offsets of 10 bytes each; notes when it is asked."""

    def __init__(self):
        self.asked = []

    def beginnings_of_added(self, partitions):
        return dict.fromkeys(partitions, 0)

    def behind_losses(self, starts):
        return starts

    def bytes_per_offset(self, partitions):
        self.asked.append(partitions)
        return dict.fromkeys(partitions, 10.0)


def test_mean_sizes_are_asked_for_now_and_then_and_for_each_partition(clock):
    tail = FakeTail()
    taking = Taking(tail, StreamLimits(max_bytes=500))

    def take(ends):
        return taking.take({ONE: 0}, ends, MOST, waits=True)

    assert take({ONE: 1000}) == take({ONE: 1000}) == {ONE: 50}
    assert take({ONE: 1000, TWO: 1000}) == {ONE: 25, TWO: 25}
    assert tail.asked == [{ONE: 0}, {ONE: 0, TWO: 0}]
    clock.now += 11
    take({ONE: 1000})
    assert tail.asked == [{ONE: 0}, {ONE: 0, TWO: 0}, {ONE: 0}]


@pytest.mark.parametrize(
    ("most", "max_bytes", "taken"),
    [(30, 500, 30), (80, 500, 50), (MOST, 500, 50), (MOST, 5, 1), (MOST, 10_000_000, 1000)],
)
def test_the_smaller_of_both_limits_counts_and_a_batch_is_never_empty(most, max_bytes, taken):
    taking = Taking(FakeTail(), StreamLimits(max_bytes=max_bytes))

    assert taking.take({ONE: 0}, {ONE: 1000}, most, waits=True) == {ONE: taken}


def test_a_batch_waits_for_offsets_whatever_their_bytes(clock):
    tail = FakeTail()
    taking = Taking(tail, StreamLimits(min_offsets=100, max_delay_s=60, max_bytes=50))

    def take(at, end):
        return taking.take({ONE: at}, {ONE: end}, MOST, waits=True)[ONE]

    assert take(0, 5) == 5, "the first batch never waits"
    assert take(5, 104) == 5
    assert take(5, 105) == 10, "what is there counts for one limit, what is taken for the other"
    assert take(10, 105) == 10
    clock.now += 61
    assert take(10, 105) == 15


def test_where_added_partitions_begin_is_known_until_the_stream_has_them():
    """Topics come and go for years; and one that is made again begins anew."""
    begins = {TWO: 500}
    tail = FakeTail()
    tail.beginnings_of_added = lambda partitions: {item: begins[item] for item in partitions}
    taking = Taking(tail, StreamLimits())
    assert taking.take({ONE: 0}, {ONE: 0, TWO: 1000}, 100, waits=False) == {ONE: 0, TWO: 600}
    taking.take({ONE: 0, TWO: 600}, {ONE: 0, TWO: 1000}, 100, waits=False)
    assert not taking._beginnings
    begins[TWO] = 0
    taking.take({ONE: 0, TWO: 1000}, {ONE: 10}, 100, waits=False)  # it is gone
    assert taking.take({ONE: 10}, {ONE: 10, TWO: 800}, 100, waits=False) == {ONE: 10, TWO: 100}


def test_a_limited_batch_begins_behind_what_is_gone():
    """A stream that stood still for a month would have empty batches for hours."""
    tail = FakeTail()
    tail.behind_losses = lambda starts: starts | ({ONE: 900} if ONE in starts else {})
    at, ends = {ONE: 100, TWO: 0}, {ONE: 1000, TWO: 50}
    taking = Taking(tail, StreamLimits())
    assert taking.take(at, ends, 75, waits=False) == {ONE: 950, TWO: 25}
    assert at == {ONE: 100, TWO: 0}
    by_bytes = Taking(tail, StreamLimits(max_bytes=750))
    assert by_bytes.take(at, ends, MOST, waits=False) == {ONE: 950, TWO: 25}
