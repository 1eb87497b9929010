"""How far a batch goes that is limited by bytes."""

from __future__ import annotations

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.limits import MOST, StreamLimits
from pyspark_kafkaproto.spark.stream.taking import Taking

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


class FakeTail:
    """Offsets of 10 bytes each; notes when it is asked."""

    def __init__(self):
        self.asked = []

    def beginnings(self, partitions):
        return dict.fromkeys(partitions, 0)

    def bytes_per_offset(self, partitions):
        self.asked.append(set(partitions))
        return dict.fromkeys(partitions, 10.0)


def test_mean_sizes_are_asked_for_now_and_then_and_for_each_partition(clock):
    tail = FakeTail()
    taking = Taking(tail, StreamLimits(max_bytes=500))

    def take(ends):
        return taking.take({ONE: 0}, ends, MOST, waits=True)

    assert take({ONE: 1000}) == take({ONE: 1000}) == {ONE: 50}
    assert take({ONE: 1000, TWO: 1000}) == {ONE: 25, TWO: 25}
    assert tail.asked == [{ONE}, {ONE, TWO}]
    clock.now += 11
    take({ONE: 1000})
    assert tail.asked == [{ONE}, {ONE, TWO}, {ONE}]
