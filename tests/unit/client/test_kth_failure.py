"""The k-th use of a socket fails, for k = 1, 2, 3 … to the end: the rows are always the same.

So every place between two system calls is met once, those too that nobody thought of.
"""

import itertools

import pytest

from pyspark_kafkaproto.client import Fetcher, ReadSettings
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.net.transport import Transport
from tests.unit.client.rows import rows, rows_of

MOST = 200


class Failing:
    """Transport's methods, of which the k-th call fails."""

    def __init__(self, patch, k, error):
        self.calls, self.k, self.error = 0, k, error
        for name in ("connect", "send", "receive_into"):
            patch.setattr(Transport, name, self.counted(name, getattr(Transport, name)))

    def counted(self, name, method):
        def call(*args):
            self.calls += 1
            if self.calls == self.k:
                raise self.error(name)
            return method(*args)

        return call

    @property
    def is_over(self):
        return self.calls < self.k


def lost(stage):
    return ConnectionFailed("a broker", stage, "the k-th call fails")


def timed_out(stage):
    return DeadlineExceeded(f"a broker: {stage}", 30)


@pytest.mark.parametrize("error", [lost, timed_out])
def test_reading_two_partitions_of_two_leaders(brokers, config, task, clock, monkeypatch, error):
    brokers.topics["orders"].move(1, node_id=2)
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(8, size_bytes=2000)
    planned = task((0, 0, None), (1, None, 80))
    for k in itertools.count(1):
        with monkeypatch.context() as patch:
            failing = Failing(patch, k, error)
            fetcher = Fetcher(planned, config(client_id=f"k-{k}"), ReadSettings())
            found = [row for block in fetcher.blocks() for row in rows_of(block)]
        assert sorted(found) == rows(0, 0, 80) + rows(1, 0, 80)
        if failing.is_over:
            break
    assert 20 < k < MOST


@pytest.mark.parametrize("error", [lost, timed_out])
def test_asking_for_offsets_of_two_leaders(brokers, clock, monkeypatch, error):
    brokers.topics["orders"].move(1, node_id=2)
    both = {TopicPartition("orders", number) for number in (0, 1)}
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(partition + 1)
    for k in itertools.count(1):
        with monkeypatch.context() as patch:
            failing = Failing(patch, k, error)
            with KafkaCluster({"bootstrap.servers": brokers.bootstrap_servers}) as kafka:
                offsets = kafka.get_latest_leader_offsets(both)
        assert offsets == {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 20}
        if failing.is_over:
            break
    assert 10 < k < MOST
