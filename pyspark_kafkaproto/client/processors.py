"""How many processors this process may use: what a thread more is worth depends on it."""

from __future__ import annotations

import os


def processors() -> int:
    """Those that the system lets this process run on; one at least."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spare_threads(is_wanted: bool | None = None) -> int:
    """How many threads are worth having beside the caller's: one for each processor but one.

    is_wanted: None leaves it to the processors; True has one in any case, False none.
    """
    if is_wanted is False:
        return 0
    return max(1 if is_wanted else 0, processors() - 1)
