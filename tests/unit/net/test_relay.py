"""A proxy's listener: what it does where the system has no more sockets for it."""

import errno
import queue
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.net import relay
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.relay import FrameStream, Listener
from pyspark_kafkaproto.net.transport import Endpoint, open_socket


@contextmanager
def stream_of(sent):
    """The stream of a client that has sent this and is gone, and both addresses as it knew them."""
    streams = queue.SimpleQueue()
    listener = Listener("127.0.0.1", 0, streams.put)
    listener.start()
    with open_socket(listener.endpoint, Deadline.after(5)) as client:
        stream = streams.get(timeout=5)
        there = Endpoint(*client.getsockname())
        client.sendall(sent)
    try:
        yield stream, (listener.endpoint, there)
    finally:
        stream.close()
        listener.close()


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x04ab"])
def test_a_stream_may_end_anywhere(sent):
    with stream_of(b"\0\0\0\x04four" + sent) as (stream, addresses):
        assert (stream.here, stream.there) == addresses
        assert stream.receive() == b"four"
        assert stream.receive() is None


@pytest.mark.parametrize(
    "first", [b"\x16\x03\x01\x02", b"\x15\x03\x03\x00"], ids=["hello", "alert"]
)
def test_tls_is_told_from_a_frame(first):
    with (
        stream_of(first) as (stream, _),
        pytest.raises(RemoteProtocolError, match="TLS: only plaintext can be recorded"),
    ):
        stream.receive()


def test_a_listener_without_descriptors_waits_for_some(monkeypatch):
    served = queue.SimpleQueue()
    listener = Listener("127.0.0.1", 0, served.put)
    real, refusals, naps = listener._sock, iter([1, 2]), []

    class Full:
        fileno = real.fileno

        def accept(self):
            if next(refusals, None):
                raise OSError(errno.EMFILE, "Too many open files")
            return real.accept()

    monkeypatch.setattr(relay, "time", SimpleNamespace(sleep=naps.append))
    monkeypatch.setattr(listener, "_sock", Full())
    client = FrameStream(open_socket(listener.endpoint, Deadline.after(5)))
    try:
        listener.start()
        served.get(timeout=5).close()
    finally:
        client.close()
        monkeypatch.undo()
        listener.close()
    assert len(naps) == 2
