from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Thread

import pytest
from reading.bare_socket import Recording, replay

from pyspark_kafkaproto.net import Endpoint


def _frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


def _recording(server: socket.socket, *conversations: list[bytes]) -> Recording:
    return Recording(Endpoint(*server.getsockname()[:2]), list(conversations))


def _answer_all(server: socket.socket, received: list[bytes], connections: int) -> None:
    """Answers each request with its payload twice over."""
    for _ in range(connections):
        client, _ = server.accept()
        with client:
            while size := client.recv(4, socket.MSG_WAITALL):
                payload = client.recv(int.from_bytes(size), socket.MSG_WAITALL)
                received.append(payload)
                client.sendall(_frame(2 * payload))


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        opened.settimeout(10)
        yield opened


def test_requests_are_sent_as_recorded_and_answers_counted(server: socket.socket) -> None:
    received: list[bytes] = []
    thread = Thread(target=_answer_all, args=(server, received, 2))
    thread.start()
    large = b"x" * 600_000  # its answer is larger than the first buffer

    total = replay(_recording(server, [_frame(b"one"), _frame(large)], [_frame(b"two")]))

    thread.join()
    assert received == [b"one", large, b"two"]
    assert total == 2 * (3 + 600_000 + 3)


def test_a_broker_that_hangs_up_is_an_error(server: socket.socket) -> None:
    def hang_up() -> None:
        client, _ = server.accept()
        client.recv(1)
        client.close()

    thread = Thread(target=hang_up)
    thread.start()
    with pytest.raises(ConnectionError):
        replay(_recording(server, [_frame(b"one")]))
    thread.join()
