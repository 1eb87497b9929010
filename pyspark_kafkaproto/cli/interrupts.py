"""SIGTERM as a second Ctrl-C: what a command has begun is brought to its end by either.

Kubernetes, systemd and `timeout` end programs by SIGTERM. Python dies of it on the spot: lines that
were read would not be written, and what was printed not committed.
"""

from __future__ import annotations

import signal
from types import FrameType

_received = signal.SIGINT


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


def _raise(number: int, frame: FrameType | None) -> None:
    del frame
    note(number)
    raise KeyboardInterrupt
