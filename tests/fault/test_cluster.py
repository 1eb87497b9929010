"""Offsets and groups while the broker that answers for them dies."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.net import Deadline
from tests.fault.conftest import killed, wait_for_all

pytestmark = pytest.mark.fault


def _coordinator(kafka, group):
    """The node that answers for a group."""
    endpoint = kafka._router._coordinator(group, Deadline.after(30))
    brokers = kafka.describe(set()).brokers
    return next(number for number, broker in brokers.items() if broker.endpoint == endpoint)


def test_committed_offsets_survive_their_coordinator(trio, kafka, replicated, new_name):
    topic, group = replicated(1, 10), new_name("group")
    wait_for_all(kafka, topic)
    only = TopicPartition(topic, 0)
    kafka.set_consumer_offsets(group, {only: 4})
    with killed(trio, _coordinator(kafka, group)):
        assert kafka.get_consumer_offsets(group, {only}) == {only: 4}
        kafka.set_consumer_offsets(group, {only: 5})
    assert kafka.get_consumer_offsets(group, {only}) == {only: 5}


def test_latest_offsets_are_those_of_the_new_leader(trio, kafka, replicated):
    topic = replicated(3, 3000)
    wait_for_all(kafka, topic)
    partitions = kafka.get_partitions({topic})
    before = kafka.get_latest_leader_offsets(partitions)
    leaders = kafka.find_leaders(partitions)
    with killed(trio, leaders[TopicPartition(topic, 0)].node_id):
        assert kafka.get_latest_leader_offsets(partitions) == before
        moved = kafka.find_leaders(partitions)[TopicPartition(topic, 0)]
        assert moved.epoch > leaders[TopicPartition(topic, 0)].epoch


def test_bootstrap_server_that_is_dead_is_passed_over(trio, kafka):
    with killed(trio, 1), KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as other:
        found = other.describe(set())
    assert {2, 3} <= set(found.brokers)
    assert found.cluster_id == kafka.describe(set()).cluster_id
