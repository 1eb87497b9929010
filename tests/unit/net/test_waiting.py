"""Several connections at once: who has an answer, who has ended, and nobody in time."""

import socket
import threading
import time
from contextlib import ExitStack, closing
from select import poll

import pytest

from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Deadline,
    Endpoint,
    wait_for_answers,
    waiting,
)
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.wire.frame import encode_response
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


@pytest.mark.slow
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


@pytest.mark.slow
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


ANSWER = encode_response(MetadataResponse(cluster_id="x" * 30_000), 9, 0)


@pytest.fixture
def asked():
    """Twenty connections with a question each, and who is to answer."""
    with ExitStack() as held:
        pairs = []
        for _ in range(20):
            server = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            place = Endpoint(*server.getsockname())
            config = ClientConfig.parse({"bootstrap.servers": str(place)})
            transport = Transport.connect(place, Deadline.after(5))
            connection = held.enter_context(closing(Connection(transport, config)))
            connection.send(MetadataRequest(topics=()), Deadline.after(5), 9)
            pairs.append((connection, held.enter_context(server.accept()[0])))
        yield pairs


@pytest.mark.slow
@pytest.mark.parametrize("timeout_s", [0, 60])
def test_many_answers_that_flow_hold_nobody_up(asked, timeout_s):
    (first, peer), *others = asked
    done = threading.Event()

    def flow():
        for byte in ANSWER[:-1]:
            for _, other in others:
                other.sendall(bytes([byte]))
            if done.wait(0.002):
                return

    flowing = threading.Thread(target=flow)
    flowing.start()
    deadline = Deadline.after(5)
    while not all(connection.take_in() or connection.heard_at for connection, _ in others):
        deadline.check("waiting for the first bytes")
    peer.sendall(ANSWER)
    try:
        while not first.take_in():
            deadline.check("waiting for an answer")
        took_s = []
        for _ in range(5):  # others may have the processor in one of them
            began = time.monotonic()
            assert wait_for_answers([connection for connection, _ in asked], timeout_s) == [first]
            took_s.append(time.monotonic() - began)
        assert min(took_s) < 0.1
    finally:
        done.set()
        flowing.join()


def test_an_answer_that_flows_is_taken_by_few_calls_where_it_is_alone(asked, monkeypatch):
    (connection, peer), *_ = asked
    calls = []
    receive = Transport.receive_some

    def counted(*arguments):
        calls.append(receive(*arguments))
        return calls[-1]

    monkeypatch.setattr(Transport, "receive_some", counted)

    def flow():
        for start in range(0, len(ANSWER), 1000):
            peer.sendall(ANSWER[start : start + 1000])

    flowing = threading.Thread(target=flow)
    flowing.start()
    assert wait_for_answers([connection], 60) == [connection]
    flowing.join()
    assert sum(calls) == len(ANSWER)
    assert len(calls) < 10


def test_what_is_not_answered_is_not_waited_for(brokers, connections):
    connection = connections[0]
    connection.send(ProduceRequest(acks=0), Deadline.after(5), 9, is_answered=False)
    assert connection.in_flight == 0
    brokers.wait_for_call("Produce")
    assert connection.request(MetadataRequest(topics=()), Deadline.after(5)).cluster_id == "fake"


def test_while_nothing_comes_nobody_looks_again_and_again(brokers, connections, monkeypatch):
    brokers.on("Metadata", STALL)
    for each in connections:
        each.send(MetadataRequest(topics=()), Deadline.after(5))
    looks = []
    monkeypatch.setattr(waiting.select, "poll", lambda: looks.append(1) or poll())
    assert wait_for_answers(connections, 0.1) == []
    assert len(looks) <= 3
