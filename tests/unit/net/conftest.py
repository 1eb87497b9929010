"""A clock that only sleeping moves, and peers at the other end of a real socket."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.net import connection, deadline, incoming, retry
from pyspark_kafkaproto.net.transport import Endpoint
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster


@pytest.fixture
def clock(monkeypatch):
    """Time in `net`, standing still but for sleeps."""
    return stop_clock(monkeypatch, retry, deadline, connection, incoming)


class Peer:
    """A listening socket whose other side is played by the test itself."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._listener.settimeout(5)
        self.endpoint = Endpoint("127.0.0.1", self._listener.getsockname()[1])

    def accept(self) -> socket.socket:
        sock, _ = self._listener.accept()
        sock.settimeout(5)
        return self._held.enter_context(sock)


@pytest.fixture
def peer():
    with ExitStack() as held:
        yield Peer(held)


@pytest.fixture
def cluster():
    with FakeCluster({"orders": 2}) as cluster:
        yield cluster
