"""Reading from the replica in one's own rack (KIP-392)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafkaproto.cluster import NewTopic, TopicPartition
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.net import Connection, Deadline
from tests.fault.conftest import wait_for_replicas
from tests.fault.reading import Reading, places_of, plan
from tests.fault.writing import wait_for_end, write
from tests.stalled import stalled

pytestmark = pytest.mark.fault

LEADER, FOLLOWER = 1, 3
RECORDS = 2000
PATIENT = {"request_timeout_ms": 15_000}  # who is slow is not to be passed over


@pytest.fixture(scope="module")
def followed(trio, kafka, new_name):
    """A topic that node 1 leads and node 3 follows; what it holds is acknowledged by both."""
    name = new_name()
    configs = {"min.insync.replicas": "1"}
    kafka.create_topics([NewTopic(name, configs=configs, assignment={0: [LEADER, FOLLOWER]})])
    write(trio, name, RECORDS, b"value")
    wait_for_end(kafka, name, RECORDS)
    wait_for_replicas(trio, name, 2)
    return name


@pytest.fixture
def asked(kafka, monkeypatch):
    """The node of each Fetch that was answered with records."""
    nodes = []
    places = {item.endpoint: item.node_id for item in kafka.describe(set()).brokers.values()}
    finish = Connection.finish

    def noting(self, *args):
        answer = finish(self, *args)
        if isinstance(answer.message, FetchResponse) and _has_records(answer.message):
            nodes.append(places[self.endpoint])
        return answer

    monkeypatch.setattr(Connection, "finish", noting)
    return nodes


def _has_records(answer):
    return any(part.records for topic in answer.responses for part in topic.partitions)


def test_records_come_from_the_replica_in_our_rack(kafka, followed, new_config, asked):
    """But the last ones, as long as the follower has not heard that they are acknowledged."""
    task = plan(kafka, followed)
    assert task.leaders[TopicPartition(followed, 0)].node_id == LEADER
    deadline = Deadline.after(30)
    while set(asked) != {FOLLOWER}:
        deadline.check(f"reading from node {FOLLOWER} alone; asked were {asked}")
        asked.clear()
        reading = Reading(task, new_config(client_rack=f"rack-{FOLLOWER}", **PATIENT))
        reading.go_on()
        assert reading.places == places_of(task)
        assert asked[0] == FOLLOWER
    assert len(asked) > 5


def test_without_a_rack_or_with_an_unknown_one_the_leader_is_asked(
    kafka, followed, new_config, asked
):
    for rack in ({}, {"client_rack": "elsewhere"}):
        reading = Reading(plan(kafka, followed), new_config(**rack))
        reading.go_on()
        assert len(reading.rows) == RECORDS
    assert set(asked) == {LEADER}


def test_follower_that_is_lost_mid_read_costs_no_row(trio, kafka, followed, new_config, asked):
    task = plan(kafka, followed)
    reading = Reading(task, new_config(client_rack=f"rack-{FOLLOWER}"))
    reading.go_on(RECORDS // 10)
    with stalled(trio, FOLLOWER):
        reading.go_on()
    assert reading.places == places_of(task)
    assert set(asked) == {FOLLOWER, LEADER}
    wait_for_replicas(trio, followed, 2)


def test_what_the_follower_has_not_got_comes_from_the_leader(
    trio, kafka, followed, new_config, asked
):
    """The planner knew the leader's end; the follower is behind it, as far as it may know."""
    task = plan(kafka, followed)
    (known,) = task.ranges
    stop = known.stop + RECORDS
    task = replace(task, ranges=(replace(known, stop=stop),))
    reading = Reading(task, new_config(client_rack=f"rack-{FOLLOWER}", **PATIENT))
    reading.go_on(RECORDS // 2)
    assert set(asked) == {FOLLOWER}
    with stalled(trio, FOLLOWER):
        write(trio, followed, RECORDS, b"late")
        wait_for_end(kafka, followed, stop)
    reading.go_on()
    assert reading.places == places_of(task)
