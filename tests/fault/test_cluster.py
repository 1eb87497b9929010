"""Offsets and groups while the broker that answered for them is dead."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.coordinators import GROUP_KEY, find_coordinators
from pyspark_kafkaproto.net import Deadline, pool
from tests.fault.conftest import (
    PAUSE_S,
    RECORDS,
    killed,
    lead_as_at_first,
    wait_for_all,
)
from tests.stalled import stalled
from tests.stopwatch import Stopwatch
from tests.waiting import until

pytestmark = pytest.mark.fault


class Loss(NamedTuple):
    """What was true before the node died that coordinated `group` and led `partition`."""

    group: str
    partition: TopicPartition
    epoch: int


def test_who_hangs_first_among_the_bootstrap_servers_costs_a_process_seconds_once(
    trio, topic, monkeypatch
):
    monkeypatch.setattr(pool, "_unreached", set())  # other tests have killed nodes
    times = []
    with stalled(trio, 1):
        for _ in range(2):
            with (
                Stopwatch() as watch,
                KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as other,
            ):
                assert other.get_partitions({topic})
            times.append(watch.took_s)
    first, second = times
    assert 2.5 < first < 9, "socket.connection.setup.timeout.ms is 10 s"
    assert second < 2.5


@pytest.fixture(scope="module")
def loss(trio, kafka, topic, new_name):
    """A node that answered for a group and for a partition is dead during these tests."""
    group = new_name("group")
    wait_for_all(trio, topic)
    lead_as_at_first(trio)  # other tests have killed nodes
    partitions = kafka.get_partitions({topic})
    kafka.set_consumer_offsets(group, dict.fromkeys(partitions, 4))
    wait_for_all(trio, "__consumer_offsets")  # else nobody may coordinate behind the one killed
    found = {}

    def is_led_by_the_coordinator():  # elections take a moment, and nodes hear of them one by one
        soon = Deadline.after(60)
        coordinator = find_coordinators(kafka._router, {group}, soon, GROUP_KEY)[group]
        leaders = kafka.find_leaders(partitions).items()
        found.update(item for item in leaders if item[1].endpoint == coordinator)
        return found

    until(is_led_by_the_coordinator, 60, "the coordinator to lead a partition", pause_s=PAUSE_S)
    partition, leader = found.popitem()
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
