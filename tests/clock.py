"""A clock that only sleeping moves: for tests of time-outs and waits that take no time."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def stop_clock(patch: pytest.MonkeyPatch, *modules: ModuleType) -> Clock:
    """Let `modules` see a clock of their own instead of the real one."""
    clock = Clock()
    for module in modules:
        patch.setattr(module, "time", clock)
    return clock
