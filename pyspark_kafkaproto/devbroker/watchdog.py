"""Ends a process when the one that started this watchdog has ended: `watchdog.py PID PARENT`.

Run by its path, with nothing of the package and no site-packages, so that it costs 15 ms and a few
MB. When the process ends by itself, so does the watchdog.
"""

from __future__ import annotations

import os
import signal
import sys
import time

_PAUSE_S = 0.2
_GRACE_S = 10.0


def watch(pid: int, parent: int) -> None:
    """Return when `pid` has ended; end it when `parent` is no longer our parent."""
    while _is_alive(pid):
        if os.getppid() != parent:
            _end(pid)
            return
        time.sleep(_PAUSE_S)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    stop_at = time.monotonic() + _GRACE_S
    while _is_alive(pid) and time.monotonic() < stop_at:
        time.sleep(_PAUSE_S)
    os.kill(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    try:
        watch(int(sys.argv[1]), int(sys.argv[2]))
    except ProcessLookupError:
        sys.exit(0)  # it ended before the signal, which is all we want
