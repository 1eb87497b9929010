"""Several connections at once: who has an answer, who has ended, and nobody in time."""

import time

import pytest

from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Deadline,
    Endpoint,
    wait_for_answers,
)
from tests.fake_broker import DEFAULT, STALL, FakeCluster, Fault, close, metadata


@pytest.fixture
def brokers():
    with FakeCluster({"orders": 1}, nodes=3) as fake:
        yield fake


@pytest.fixture
def connections(brokers):
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    opened = [
        Connection.open(Endpoint.parse(brokers.address(node)), config, Deadline.after(5))
        for node in (1, 2, 3)
    ]
    yield opened
    for each in opened:
        each.close()


def half(brokers):
    """The first bytes of an answer, and nothing more on a connection that stays open."""
    return lambda call: Fault(metadata(brokers, call), lambda frame: frame[:9])


def test_whoever_has_an_answer_or_has_ended_is_named(brokers, connections):
    first, second, third = connections
    brokers.on("Metadata", STALL, node=1)
    brokers.on("Metadata", DEFAULT, node=2)
    brokers.on("Metadata", close(), node=3)
    assert wait_for_answers([], 1) == []
    assert wait_for_answers(connections, 0) == []
    for each in connections:
        each.send(MetadataRequest(topics=()), Deadline.after(5))
    found = set()
    deadline = Deadline.after(5)
    while len(found) < 2:
        deadline.check("waiting for two of three")
        found |= set(wait_for_answers([one for one in connections if one not in found], 1))
    assert found == {second, third}
    second.receive(Deadline.after(5))
    began = time.monotonic()
    assert wait_for_answers([first, second], 0.05) == []
    assert 0.04 < time.monotonic() - began < 2
    third.close()
    assert wait_for_answers([first, third], 1) == [third]


def test_whoever_has_answered_by_half_holds_nobody_up(brokers, connections):
    first, second, _ = connections
    brokers.on("Metadata", half(brokers), node=1)
    brokers.on("Metadata", DEFAULT, node=2)
    began = time.monotonic()
    first.send(MetadataRequest(topics=()), Deadline.after(5))
    deadline = Deadline.after(5)
    while not first.heard_at:
        deadline.check("waiting for half an answer")
        assert wait_for_answers([first], 0.01) == []
    second.send(MetadataRequest(topics=()), Deadline.after(5))
    assert wait_for_answers([first, second], 60) == [second]
    second.receive(Deadline.after(0))
    assert wait_for_answers([first, second], 0.05) == []
    assert time.monotonic() - began < 2


def test_what_is_not_answered_is_not_waited_for(brokers, connections):
    connection = connections[0]
    connection.send(ProduceRequest(acks=0), Deadline.after(5), 9, is_answered=False)
    assert connection.in_flight == 0
    brokers.wait_for_call("Produce")
    assert connection.request(MetadataRequest(topics=()), Deadline.after(5)).cluster_id == "fake"
