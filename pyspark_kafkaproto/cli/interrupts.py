"""SIGTERM as a second Ctrl-C: what a command has begun is brought to its end by either.

Kubernetes, systemd and `timeout` end programs by SIGTERM. Python dies of it on the spot: lines that
were read would not be written, and what was printed not committed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_received = signal.SIGINT
_raised_at = float("-inf")
_TWICE_S = 0.5  # `timeout` sends its signal to the process, and then to its group


def heed_sigterm() -> None:
    """From now on SIGTERM raises KeyboardInterrupt, too."""
    signal.signal(signal.SIGTERM, _raise)


def note(number: int) -> None:
    """Remember which signal came, for the exit code."""
    global _received  # noqa: PLW0603 - a process has one exit code
    _received = signal.Signals(number)


def interrupted_code() -> int:
    """The exit code of a command that was interrupted, as a shell has it: 130, or 143."""
    return 128 + _received


@contextmanager
def wakes(handle: Callable[[int, FrameType | None], None]) -> Iterator[tuple[int, int]]:
    """Until its end SIGINT and SIGTERM go to `handle`, and each writes to a pipe besides.

    The system may hand a signal to any thread, and Python runs the handler once the main thread
    wakes up: waiting for a lock, it would sleep on. Reading from the pipe, or polling it, it does
    not.

    Yields:
        the pipe's ends, to read from and to write to; writing does not block.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    wakes_before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    before = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield woken, wake
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(wakes_before)
        os.close(woken)
        os.close(wake)


def _raise(number: int, frame: FrameType | None) -> None:
    global _raised_at  # noqa: PLW0603 - a process is ended once
    del frame
    now = time.monotonic()
    if now - _raised_at < _TWICE_S:
        return  # the same one: what the first has ended is to be shown, or committed
    _raised_at = now  # not of those that were not heeded: who sends many wants it to end
    note(number)
    raise KeyboardInterrupt
