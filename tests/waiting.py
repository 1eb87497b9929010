"""Waits for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark_kafkaproto.net import Deadline

# Of clients whose nodes elect: two with a slow disk or a busy processor may take most of a minute.
THROUGH_ELECTIONS = {"default.api.timeout.ms": "180000"}


def until(
    holds: Callable[[], object],
    within_s: float = 20.0,
    what: str = "what is waited for",
    pause_s: float = 0.005,
) -> None:
    """Return once `holds`; DeadlineExceeded with `what` if that is not in time."""
    deadline = Deadline.after(within_s)
    while not holds():
        deadline.check(what)
        time.sleep(pause_s)
