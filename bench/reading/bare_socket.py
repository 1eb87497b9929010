"""The bare socket: our own requests, byte for byte, over a plain socket, the answers thrown away.

A reading of ours goes through a recording proxy first. What it sent is then sent again with nothing
between socket and bin: no request is built, no answer looked at. Like ours, it asks for the next
block as soon as the one before is there, and receives into one buffer.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

from pyspark_kafkaproto.net import Endpoint
from reading.ours import Reading

_SIZE_BYTES = 4


@dataclass(slots=True)
class Recording:
    """What a reading sent to a broker.

    conversations: per connection the requests in order, each with its size in front.
    answer_bytes: of all answers, their sizes in front not counted.
    """

    broker: Endpoint
    conversations: list[list[bytes]] = field(default_factory=list)
    answer_bytes: int = 0


def record(reading: Reading) -> Recording:
    """Read once through a proxy."""
    leaders = {leader.endpoint for task in reading.tasks for leader in task.leaders.values()}
    if len(leaders) != 1:
        raise RuntimeError(f"the bare socket reads from one broker, the topic is led by {leaders}")
    recording = Recording(leaders.pop())
    with _proxy(recording) as endpoint, reading.through(endpoint) as proxied:
        proxied.count()
    return recording


def replay(recording: Recording) -> int:
    """Send everything again, one request after the other; the bytes that came back."""
    broker = recording.broker
    total = 0
    buffer = bytearray(1 << 20)
    for requests in recording.conversations:
        with socket.create_connection((broker.host, broker.port)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for request in requests:
                sock.sendall(request)
                size = int.from_bytes(_receive(sock, memoryview(bytearray(_SIZE_BYTES))))
                if size > len(buffer):
                    buffer = bytearray(size)
                _receive(sock, memoryview(buffer)[:size])
                total += size
    return total


def _receive(sock: socket.socket, view: memoryview) -> memoryview:
    filled = 0
    while filled < len(view):
        count = sock.recv_into(view[filled:], 0, socket.MSG_WAITALL)
        if not count:
            raise ConnectionError("the broker closed the connection")
        filled += count
    return view


@contextmanager
def _proxy(recording: Recording) -> Iterator[Endpoint]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=_serve, args=(server, recording), daemon=True)
        thread.start()
        yield Endpoint(*server.getsockname()[:2])
        server.shutdown(socket.SHUT_RDWR)  # ends the accept below
        thread.join()


def _serve(server: socket.socket, recording: Recording) -> None:
    """One connection at a time: a reading has no more."""
    address = (recording.broker.host, recording.broker.port)
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return  # the server was shut down
        with client, socket.create_connection(address) as upstream:
            _converse(client, upstream, recording)


def _converse(client: socket.socket, upstream: socket.socket, recording: Recording) -> None:
    """Requests and answers in turn: one request is in flight at most, as in our reading."""
    requests: list[bytes] = []
    recording.conversations.append(requests)
    while size := client.recv(_SIZE_BYTES, socket.MSG_WAITALL):
        request = size + bytes(_receive(client, memoryview(bytearray(int.from_bytes(size)))))
        requests.append(request)
        upstream.sendall(request)
        prefix = bytes(_receive(upstream, memoryview(bytearray(_SIZE_BYTES))))
        answer = _receive(upstream, memoryview(bytearray(int.from_bytes(prefix))))
        recording.answer_bytes += len(answer)
        client.sendall(prefix)
        client.sendall(answer)
