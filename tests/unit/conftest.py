"""Fixtures for several rooms."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pyspark_kafkaproto.client.reading import gone
from pyspark_kafkaproto.cluster import capturing, routing, silence, topology
from pyspark_kafkaproto.net import pool, properties
from tests.fake_broker import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def nobody_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test has failed to reach a broker, whose port the next one's may have."""
    monkeypatch.setattr(pool, "_unreached", set())


@pytest.fixture(autouse=True)
def nothing_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No option was named in a warning, as each is once in a process."""
    monkeypatch.setattr(properties, "_warned", set())


@pytest.fixture(autouse=True)
def nothing_deleted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test has found out that a topic is gone, whose id the next one's may have."""
    monkeypatch.setattr(gone, "_until", {})


@pytest.fixture
def unused_ports() -> Iterator[Callable[[int], list[int]]]:
    """Gives so many ports at which nobody listens, nor any test beside this one while it lasts."""
    with ExitStack() as held:

        def hold(count: int) -> list[int]:
            sockets = [held.enter_context(socket.socket()) for _ in range(count)]
            for one in sockets:
                one.bind(("", 0))
            return [one.getsockname()[1] for one in sockets]

        yield hold


@pytest.fixture
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """News of a topic travel in no time: whoever does not know one is believed."""
    monkeypatch.setattr(topology, "_NEWS_TRAVELS_S", 0)


@pytest.fixture
def opinions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another broker is asked for its opinion without a pause."""
    monkeypatch.setattr(routing, "_BETWEEN_OPINIONS_S", 0)


@pytest.fixture
def nothing_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No connection has a ring yet; the folder where errors leave their packets."""
    folder = tmp_path / "packets"
    folder.mkdir()
    monkeypatch.setattr(capturing, "_rings", deque(maxlen=32))
    monkeypatch.setattr(capturing, "_written", [])
    monkeypatch.setattr(capturing.tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], object]:
    """The timer of whoever waits goes off when the test says so."""
    timers: list[Held] = []

    class Held:
        daemon = False

        def __init__(self, _: float, say: Callable[[], None]) -> None:
            self.go_off = say
            timers.append(self)

        def start(self) -> None:
            """Later."""

        cancel = join = start

    monkeypatch.setattr(silence, "Timer", Held)

    def then(_: object) -> object:
        """A fake node's answer, behind the moment."""
        timers[-1].go_off()
        return DEFAULT

    return then


@pytest.fixture
def hole() -> Iterator[tuple[str, int]]:
    """An address that lets nobody connect, and says nothing."""
    with ExitStack() as held:
        listening = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # as many as it takes until the kernel lets go of who comes next
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()
