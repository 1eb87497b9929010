"""Partitions that come while a stream runs, and what is planned of them."""

from __future__ import annotations

from tests.fake_log import FakeLog


def add_partition(brokers, *, start=0, stop=0):
    topic = brokers.topics["orders"]
    number = len(topic.leaders)
    topic.leaders.append(1)
    topic.epochs.append(0)
    log = brokers.logs["orders", number] = FakeLog()
    log.start, log.stop = start, stop


def ranges(partitions):
    return [
        (item.partition, item.start, item.stop)
        for partition in partitions
        for item in partition.task.ranges
    ]
