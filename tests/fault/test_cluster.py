"""Offsets and groups while the broker that answered for them is dead."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.net import Deadline
from tests.fault.conftest import RECORDS, killed, lead_as_at_first, wait_for_all

pytestmark = pytest.mark.fault


class Loss(NamedTuple):
    """What was true before the node died that coordinated `group` and led `partition`."""

    group: str
    partition: TopicPartition
    epoch: int


@pytest.fixture(scope="module")
def loss(trio, kafka, topic, new_name):
    """A node that answered for a group and for a partition is dead during these tests."""
    group = new_name("group")
    wait_for_all(trio, topic)
    lead_as_at_first(trio)  # other tests have killed nodes
    leaders = kafka.find_leaders(kafka.get_partitions({topic}))
    kafka.set_consumer_offsets(group, dict.fromkeys(leaders, 4))
    coordinator = kafka._router.coordinators([group], Deadline.after(30))[group]
    partition, leader = next(item for item in leaders.items() if item[1].endpoint == coordinator)
    with killed(trio, leader.node_id):
        yield Loss(group, partition, leader.epoch)


def test_committed_offsets_survive_their_coordinator(kafka, loss):
    assert kafka.get_consumer_offsets(loss.group, {loss.partition}) == {loss.partition: 4}
    kafka.set_consumer_offsets(loss.group, {loss.partition: 5})
    assert kafka.get_consumer_offsets(loss.group, {loss.partition}) == {loss.partition: 5}


def test_offsets_come_from_the_new_leader(kafka, topic, loss):
    partitions = kafka.get_partitions({topic})
    assert sum(kafka.get_latest_leader_offsets(partitions).values()) == RECORDS
    assert kafka.find_leaders({loss.partition})[loss.partition].epoch > loss.epoch


def test_dead_bootstrap_server_is_passed_over(trio, topic, loss):
    with KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as other:
        assert loss.partition in other.get_partitions({topic})
