"""Brokers die in the middle of exactly-once writes: each row is seen once all the same.

At a chosen step of a micro-batch the node that matters there is killed (the coordinator of a
transaction, the leader of a partition, of the decisions), and comes back; a producer that commits
offsets loses the group's coordinator.
"""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from pyspark_kafkaproto import KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.cluster.coordinators import GROUP_KEY, TRANSACTION_KEY
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.net import ClientConfig, Deadline
from tests.fault.conftest import killed, make_replicated, wait_for_all
from tests.fault.dying import FailPoints
from tests.fault.micro_batches import Query
from tests.fault.test_exactly_once import PARTITIONS, TASKS, Written, stream_turn
from tests.waiting import THROUGH_ELECTIONS

pytestmark = pytest.mark.fault

_PAUSE_S = 0.02
_DOWN_S = 2.0


@pytest.fixture
def written(trio, new_name):
    name = new_name()
    make_replicated(trio, name, PARTITIONS)
    wait_for_all(trio, name)
    return Written(trio.bootstrap_servers, name)


def node_at(trio, endpoint):
    """The id of the node that listens there."""
    places = trio.bootstrap_servers.split(",")
    return places.index(str(endpoint)) + 1


def coordinator(trio, key, kind):
    router = Router(ClientConfig.parse({"bootstrap.servers": trio.bootstrap_servers}))
    try:
        return node_at(trio, router.coordinators([key], Deadline.after(180), kind)[key])
    finally:
        router.close()


def leader(trio, topic):
    with KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as cluster:
        only = TopicPartition(topic, 0)
        return cluster.find_leaders({only})[only].node_id


POINTS = (
    "driver-sent-EndTxn 2 none",
    "task-sent-Produce 1 none",
    "driver-sent-EndTxn 1 none",
    "driver-sent-Produce 1 none",
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("points", [POINTS[:2], pytest.param(POINTS[2:], marks=pytest.mark.long)])
def test_a_node_dies_in_the_middle_of_a_micro_batch(trio, written, tmp_path, points):
    query = Query(written.options, FailPoints(tmp_path / "points"), str(uuid.uuid4()), TASKS)
    query.points.arm()
    stream_turn(query, written)
    driver = f"{written.topic}-driver-{query.name}"
    finders = (
        lambda: coordinator(trio, next_id(written, query), TRANSACTION_KEY),
        lambda: leader(trio, written.topic),
        lambda: coordinator(trio, driver, TRANSACTION_KEY),
        lambda: leader(trio, f"{written.topic}-decisions"),
    )
    for point in points:
        wait_for_all(trio, written.topic)
        node = finders[POINTS.index(point)]()
        query.points.arm(point)
        dying = threading.Thread(target=kill_when_reached, args=(trio, query.points, node))
        dying.start()
        outcome = stream_turn(query, written)
        dying.join()
        assert query.points.was_hit
        print(f"node {node} killed at {point}: {outcome}")


def next_id(written, query):
    """The transactional id that the next batch's first partition is written with."""
    speculative = query.attempts + 1
    return f"{written.topic}-{query.name}-0-{speculative + 1}"


def kill_when_reached(trio, points, node):
    """Kill a node at the armed step, and bring it back."""
    deadline = Deadline.after(60)
    while not points.was_hit and not deadline.has_passed:
        time.sleep(_PAUSE_S)
    with killed(trio, node):
        time.sleep(_DOWN_S)  # it is down for so long: nothing to wait for


@pytest.mark.timeout(300)
def test_the_groups_coordinator_dies_while_offsets_are_committed(trio, written):
    wait_for_all(trio, written.topic)
    servers = {"bootstrap.servers": trio.bootstrap_servers} | THROUGH_ELECTIONS
    source = TopicPartition(written.topic, 0)
    with Producer(servers | {"transactional.id": written.topic}, topic=written.topic) as producer:
        producer.begin_transaction()
        producer.send([ProducerRecord(row) for row in written.new_rows()])
        producer.send_offsets_to_transaction({source: 1}, written.topic)
        producer.commit_transaction()
        rows = written.new_rows()
        producer.begin_transaction()
        producer.send([ProducerRecord(row) for row in rows])
        with killed(trio, coordinator(trio, written.topic, GROUP_KEY)):
            producer.send_offsets_to_transaction({source: 2}, written.topic)
            producer.commit_transaction()
            with KafkaCluster(servers) as cluster:
                assert cluster.get_consumer_offsets(written.topic, {source}) == {source: 2}
        written.expected.update(rows)
        written.expected.update(f"1-{n}" for n in range(len(rows)))
        written.compare()
