"""SIGTERM as a second Ctrl-C."""

from __future__ import annotations

import signal

import pytest

from pyspark_kafkaproto.cli import interrupts


@pytest.fixture
def _heeded(monkeypatch):
    for name in ("_received", "_raised_at"):
        monkeypatch.setattr(interrupts, name, getattr(interrupts, name))
    before = signal.getsignal(signal.SIGTERM)
    interrupts.heed_sigterm()
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_heeded")
def test_a_sigterm_that_timeout_sends_twice_ends_a_command_once():
    """Else `timeout 60 kafkaproto loadtest …` shows no result: a second one leaves at once."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert interrupts.interrupted_code() == 143


@pytest.mark.usefixtures("_heeded")
def test_another_sigterm_is_a_second_one(monkeypatch):
    monkeypatch.setattr(interrupts, "_TWICE_S", 0)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("_heeded")
def test_who_sends_one_after_the_other_is_heeded_again(monkeypatch):
    """As `while kill PID; do sleep 0.2; done` does, and a second one leaves at once."""
    now = iter([0.0, 0.2, 0.4, 0.6])
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: next(now))
    heeded = []
    for _ in range(4):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            heeded.append(True)
        else:
            heeded.append(False)
    assert heeded == [True, False, False, True]
