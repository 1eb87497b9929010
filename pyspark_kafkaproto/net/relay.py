"""Both ends of a proxy: listening for clients, and streams of frames to either side.

It moves whole frames and knows nothing of what they say. A stream that is silent is fine; one
that ends inside a frame, or sends what cannot be a frame, is over.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from pyspark_kafkaproto.errors import ConnectionFailed, RemoteProtocolError
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.transport import Endpoint, open_socket, reason_of
from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES, frame_size

FRAME_BYTES_MAX = 1 << 28
_PIECE_BYTES = 1 << 20
_PAUSE_S = 0.05


class FrameStream:
    """One end of a proxied connection.

    Attributes:
        here, there: the addresses of both ends of the socket.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self.here = Endpoint(*sock.getsockname()[:2])
        self.there = Endpoint(*sock.getpeername()[:2])

    @classmethod
    def connect(cls, endpoint: Endpoint, deadline: Deadline) -> FrameStream:
        """A stream to `endpoint`; ConnectionFailed names the stage."""
        sock = open_socket(endpoint, deadline)
        try:
            return cls(sock)
        except OSError as error:  # the broker has hung up by now
            sock.close()
            raise ConnectionFailed(str(endpoint), "connect", reason_of(error, deadline)) from error

    def receive(self) -> bytes | None:
        """The next frame without its size prefix; None when the stream is over.

        Raises:
            RemoteProtocolError: its size cannot be a frame's; the text says what it looks like.
        """
        prefix = self._exactly(SIZE_PREFIX_BYTES)
        if prefix is None:
            return None
        if prefix[:2] in {b"\x16\x03", b"\x15\x03"}:
            raise RemoteProtocolError("it speaks TLS: only plaintext can be recorded here")
        return self._exactly(frame_size(prefix, FRAME_BYTES_MAX))

    def _exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self._sock.recv(min(_PIECE_BYTES, size - len(received)))
            except OSError:
                return None
            if not piece:
                return None
            received += piece
        return bytes(received)

    def send(self, payload: bytes) -> bool:
        """Send a frame, its size in front; False when nobody takes it any more."""
        try:
            self._sock.sendall(len(payload).to_bytes(SIZE_PREFIX_BYTES) + payload)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End both directions; who waits in `receive` gets None."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


class Listener:
    """Accepts connections on a port and hands each to `serve`, in a thread of its own.

    The port is taken at once; clients wait until `start`.

    Attributes:
        endpoint: where it listens.

    Raises:
        OSError: nobody can listen there.
    """

    def __init__(self, host: str, port: int, serve: Callable[[FrameStream], None]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._sock = socket.create_server((host, port), family=family)
        self.endpoint = Endpoint(*self._sock.getsockname()[:2])
        self._serve = serve

    def start(self) -> None:
        """Serve clients, those that wait already first."""
        threading.Thread(target=self._accept, name=f"tap {self.endpoint}", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._sock.accept()
                stream = FrameStream(accepted)
            except OSError:
                if self._sock.fileno() < 0:
                    return
                # The client left before it was served; or there are no sockets left for one.
                time.sleep(_PAUSE_S)
                continue
            name = f"tap {self.endpoint}, client {stream.there}"
            threading.Thread(target=self._serve, name=name, args=(stream,), daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
