import socket

import pytest

from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net import ports
from pyspark_kafkaproto.net.deadline import Deadline


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_free_ports_are_different_and_can_be_bound():
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(ports.is_free(port) for port in found)


def test_a_port_that_someone_listens_on_is_not_free(server):
    assert not ports.is_free(server)
    assert ports.answers("127.0.0.1", server)


def test_a_port_that_nobody_listens_on_does_not_answer(unused_ports):
    assert not ports.answers("127.0.0.1", *unused_ports(1))


def test_waiting_ends_with_the_answer(server):
    ports.wait_until_answers("127.0.0.1", server, Deadline.after(10))


@pytest.mark.slow
def test_waiting_ends_at_the_deadline(unused_ports):
    (port,) = unused_ports(1)
    with pytest.raises(DeadlineExceeded, match=f"127.0.0.1:{port} to accept .*within 0.1 s"):
        ports.wait_until_answers("127.0.0.1", port, Deadline.after(0.1))
