"""The way to one broker, which can be cut in each of the ways in which networks are.

    with Line() as line:
        broker = DevBroker(listeners=…, advertised={"FAR": str(line.endpoint)})
        line.lead_to(endpoint)

Clients that are sent there by an advertised listener are behind the line, all others are not: so
one member of a group can be cut off and the others see it. As with TCP what is held is not lost but
late: it arrives when the line is whole again, also from connections that were given up meanwhile.
One thread moves all bytes.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Self

from pyspark_kafkaproto.net import Endpoint

_CHUNK = 1 << 16
_MOST_HELD = 1 << 20  # of one way; behind that its sender has to wait, as for a full window
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST


class Line:
    """Takes connections at `endpoint`; whole until it is told otherwise."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.endpoint = Endpoint(*self._listener.getsockname())
        self._target: Endpoint | None = None
        self._lock = threading.RLock()
        self._connections: list[_Connection] = []
        self._holds = {"up": False, "down": False, "new": False}
        self._refuses = False
        self._delay_s = 0.0
        self._is_over = False
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="line", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
        self._wake.send(b"x")
        self._thread.join(10)
        assert not self._thread.is_alive()

    def lead_to(self, endpoint: Endpoint) -> None:
        """Where connections go on."""
        self._target = endpoint

    def hold(self, *what: str) -> None:
        """Let nothing pass: `up` (to the broker), `down`, `new` (connections); without any, all."""
        self._change(lambda: self._holds.update(dict.fromkeys(what or self._holds, True)))

    def lose(self) -> None:
        """Swallow for ever what the connections of now say, as who has forgotten them does.

        Nothing passes until `heal`, after which new connections do.
        """

        def change() -> None:
            self._holds = dict.fromkeys(self._holds, True)
            for one in self._connections:
                one.is_lost = True

        self._change(change)

    def reset(self) -> None:
        """End all connections by RST, and refuse new ones."""

        def change() -> None:
            self._refuses = True
            for one in self._connections:
                one.reset()

        self._change(change)

    def delay(self, delay_s: float) -> None:
        """What is said from now on takes so long in each direction, in its order."""
        self._change(lambda: setattr(self, "_delay_s", delay_s))

    def heal(self) -> None:
        """Let all pass, what was held first."""

        def change() -> None:
            self._holds = dict.fromkeys(self._holds, False)
            self._refuses, self._delay_s = False, 0.0

        self._change(change)

    def _change(self, change) -> None:
        with self._lock:
            change()
        self._wake.send(b"x")

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._is_over:
                    break
                wait_s, selector = self._step()
            with selector:
                selector.select(wait_s)
            with suppress(BlockingIOError):
                self._woken.recv(_CHUNK)
        for one in self._connections:
            one.reset()
        for sock in (self._listener, self._wake, self._woken):
            sock.close()

    def _step(self) -> tuple[float | None, selectors.BaseSelector]:
        """Move what can be moved; for how long, and for what, to wait then."""
        self._take_new()
        for one in self._connections:
            if one.far is None and not self._holds["new"] and not one.is_lost:
                one.go_on(self._target)
            one.move(self._holds, self._delay_s)
        self._connections = [one for one in self._connections if not one.is_closed]
        selector = selectors.DefaultSelector()
        selector.register(self._woken, selectors.EVENT_READ)
        selector.register(self._listener, selectors.EVENT_READ)
        due: list[float] = []
        for one in self._connections:
            for sock, events in one.waits_for(self._holds, due).items():
                selector.register(sock, events)
        now = time.monotonic()
        return (max(0.0, min(due) - now) if due else None), selector

    def _take_new(self) -> None:
        with suppress(BlockingIOError):
            while True:
                near, _ = self._listener.accept()
                one = _Connection(near)
                if self._refuses:
                    one.reset()
                else:
                    self._connections.append(one)


class _Way:
    """One direction of a connection."""

    def __init__(self) -> None:
        self.held: deque[tuple[float, memoryview]] = deque()  # from when on each may pass
        self.is_ended = self.is_over = False

    @property
    def takes_more(self) -> bool:
        return not self.is_ended and sum(len(piece) for _, piece in self.held) < _MOST_HELD


class _Connection:
    def __init__(self, near: socket.socket) -> None:
        near.setblocking(False)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.near = near
        self.far: socket.socket | None = None
        self.is_lost = self.is_closed = False
        self._ways = {"up": _Way(), "down": _Way()}

    def go_on(self, target: Endpoint) -> None:
        try:
            self.far = socket.create_connection(target)
        except OSError:
            self.reset()  # there is no broker
            return
        self.far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.far.setblocking(False)

    def reset(self) -> None:
        for sock in filter(None, (self.near, self.far)):
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()
        self.is_closed = True

    def _ends(self, name: str) -> tuple[socket.socket | None, socket.socket | None]:
        return (self.near, self.far) if name == "up" else (self.far, self.near)

    def move(self, holds: dict[str, bool], delay_s: float) -> None:
        if self.is_closed:
            return
        for name, way in self._ways.items():
            source, target = self._ends(name)
            try:
                self._take(way, source, delay_s)
                if self.is_lost:
                    way.held.clear()
                elif target is not None and not holds[name]:
                    self._pass(way, target)
            except OSError:  # either end was reset
                self.reset()
                return
        if all(way.is_over for way in self._ways.values()):
            self.near.close()
            self.far.close()
            self.is_closed = True

    def _take(self, way: _Way, source: socket.socket | None, delay_s: float) -> None:
        with suppress(BlockingIOError):
            while source is not None and way.takes_more:
                piece = source.recv(_CHUNK)
                if not piece:
                    way.is_ended = True
                else:
                    way.held.append((time.monotonic() + delay_s, memoryview(piece)))

    def _pass(self, way: _Way, target: socket.socket) -> None:
        with suppress(BlockingIOError):
            while way.held and way.held[0][0] <= time.monotonic():
                due, piece = way.held[0]
                sent = target.send(piece)
                way.held[0] = due, piece[sent:]
                if sent == len(piece):
                    way.held.popleft()
            if way.is_ended and not way.held and not way.is_over:
                way.is_over = True
                target.shutdown(socket.SHUT_WR)

    def waits_for(self, holds: dict[str, bool], due: list[float]) -> dict[socket.socket, int]:
        events: dict[socket.socket, int] = {}
        for name, way in self._ways.items():
            source, target = self._ends(name)
            if source is not None and way.takes_more:
                events[source] = events.get(source, 0) | selectors.EVENT_READ
            if way.held and target is not None and not holds[name]:
                if way.held[0][0] <= time.monotonic():
                    events[target] = events.get(target, 0) | selectors.EVENT_WRITE
                else:
                    due.append(way.held[0][0])
        return events
