"""A network that can be cut: every connection goes through a relay that can stop passing bytes.

What was sent before or during a cut is not lost but late, as with TCP: it arrives when the network
is whole again, also what belongs to connections that their client has given up meanwhile.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.net.transport import Transport

if TYPE_CHECKING:
    import pytest

_CHUNK = 1 << 16


class Network:
    """Relays for whatever `Transport.connect` is asked for, from here on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._whole = threading.Event()
        self._whole.set()
        self._relays: dict[Endpoint, Endpoint] = {}
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        real = Transport.connect

        def connect(endpoint, deadline, first=0):
            transport = real(self._relay(endpoint), deadline, first)
            transport.endpoint = endpoint
            return transport

        patch.setattr(Transport, "connect", connect)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """No byte passes until the end."""
        self._whole.clear()
        try:
            yield
        finally:
            self._whole.set()

    def close(self) -> None:
        """End everything."""
        self._is_closed = True
        self._whole.set()
        for sock in self._sockets:
            with suppress(OSError):  # its peer was first
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _relay(self, endpoint: Endpoint) -> Endpoint:
        if endpoint not in self._relays:
            listener = socket.create_server(("127.0.0.1", 0))
            self._keep(listener)
            self._relays[endpoint] = Endpoint(*listener.getsockname())
            self._start(self._accept, listener, endpoint)
        return self._relays[endpoint]

    def _start(self, work, *arguments) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)  # whoever closes can only wait for one that has started

    def _keep(self, sock: socket.socket) -> None:
        """It ends with the rest, also where that is over by now."""
        self._sockets.append(sock)
        if self._is_closed:
            sock.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket, endpoint: Endpoint) -> None:
        with listener, suppress(OSError):  # closed
            while True:
                near, _ = listener.accept()
                self._keep(near)
                self._start(self._join, near, endpoint)

    def _join(self, near: socket.socket, endpoint: Endpoint) -> None:
        with near, suppress(OSError):  # the broker is dead
            self._whole.wait()
            with socket.create_connection((endpoint.host, endpoint.port)) as far:
                self._keep(far)
                back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
                back.start()
                self._pass(near, far)
                back.join()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # either end is gone
            while data := source.recv(_CHUNK):
                self._whole.wait()
                target.sendall(data)
        self._whole.wait()
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
