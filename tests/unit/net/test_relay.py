"""A proxy's listener: what it does where the system has no more sockets for it."""

import errno
import queue
from types import SimpleNamespace

from pyspark_kafkaproto.net import relay
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.relay import FrameStream, Listener
from pyspark_kafkaproto.net.transport import open_socket


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
