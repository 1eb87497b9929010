"""Whoever waits for a cluster that does not answer is told so, once, long before it is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

QUIET_S = 2.0  # whoever waits for longer wants to know what for


@contextmanager
def waiting_aloud(waits_for: Callable[[], str], tell: Callable[[str], object]) -> Iterator[None]:
    """Tell, once, who is waited for if nobody answers for a while.

    Args:
        waits_for: the addresses, as `KafkaCluster.waits_for` has them.
        tell: is given a line, in another thread, and not after the end.
    """

    def say() -> None:
        if silent := waits_for():
            tell(f"no broker has answered yet, still trying {silent}")

    timer = Timer(QUIET_S, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # what it says comes before an error
