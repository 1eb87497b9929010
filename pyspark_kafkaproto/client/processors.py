"""How many processors this process may use: what a thread more is worth depends on it."""

from __future__ import annotations

import os


def processors() -> int:
    """Those that the system lets this process run on; one at least."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
