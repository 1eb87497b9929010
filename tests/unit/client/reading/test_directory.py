"""Who leads: asked for where that is not known, seldom in vain, and anew where it is old."""

from __future__ import annotations

from contextlib import closing

import pytest

from pyspark_kafkaproto.client.reading.directory import Directory
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import Deadline

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = (FIRST, SECOND)
NOBODY = -1


@pytest.fixture
def directory(config, task, clock):
    """Both partitions are planned; node 1 leads them."""
    with closing(Router(config(retry_backoff_ms=100, retry_backoff_max_ms=100))) as router:
        yield Directory(task((0, 0, 10), (1, 0, 10)), router, fail_on_data_loss=True)


def leaders(directory, *partitions):
    """The node of each that has one."""
    found = directory.leaders(partitions or BOTH, Deadline.after(5))
    return {partition: leader.node_id for partition, leader in found.items()}


def looked_up(brokers):
    return len(brokers.asked("Metadata"))


def test_leaders_that_were_planned_are_not_looked_up(brokers, directory):
    assert leaders(directory) == {FIRST: 1, SECOND: 1}
    assert looked_up(brokers) == 0


def test_who_has_no_leader_is_asked_about_again_after_a_while_beside_others(
    brokers, directory, clock
):
    brokers.topics["orders"].move(1, NOBODY)
    directory.forget([SECOND])
    for _ in range(3):
        assert leaders(directory) == {FIRST: 1}
    assert looked_up(brokers) == 1
    assert directory.is_in_vain(SECOND)
    clock.now += 0.11
    assert not directory.is_in_vain(SECOND)
    brokers.topics["orders"].move(1, 2)
    assert leaders(directory) == {FIRST: 1, SECOND: 2}
    assert looked_up(brokers) == 2


def test_where_there_is_no_other_it_is_asked_about_at_each_try(brokers, directory):
    brokers.topics["orders"].move(1, NOBODY)
    directory.forget([SECOND])
    for tries in (1, 2):
        with pytest.raises(BrokerError, match="LEADER_NOT_AVAILABLE"):
            leaders(directory, SECOND)
        assert looked_up(brokers) == tries


def test_whoever_reads_without_an_end_hears_of_leaders_that_moved(brokers, directory):
    brokers.topics["orders"].move(1, 2)
    assert leaders(directory) == {FIRST: 1, SECOND: 1}, "no error has told"
    directory.begin_anew()
    for _ in range(2):
        assert leaders(directory) == {FIRST: 1, SECOND: 2}
    assert looked_up(brokers) == 1


def test_where_nobody_tells_of_leaders_they_stay_as_they_were(brokers, directory):
    brokers.on("Metadata", MetadataResponse(error_code=-1))
    directory.begin_anew()
    assert leaders(directory) == {FIRST: 1, SECOND: 1}
    assert looked_up(brokers) == 1
