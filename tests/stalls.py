"""How long this process stood still: a machine that others use is no fault of what is measured."""

from __future__ import annotations

import threading
import time
from typing import Self

_LOOK_S = 0.01
_WORTH_NOTING_S = 0.06


class Stalls:
    """Looks, inside a `with`, whether the process gets on."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []  # when it was seen last, and for how long not
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def took(self, began: float) -> float:
        """Seconds since `began` (time.monotonic), but for those in which it stood still."""
        now = time.monotonic()
        time.sleep(2 * _LOOK_S)  # what has just ended is seen, too
        return now - began - self.within(began, now)

    def within(self, began: float, ended: float) -> float:
        """Seconds between the two (time.monotonic) in which it stood still; a little more."""
        return sum(away_s for at, away_s in self._found if began - away_s <= at <= ended)

    def _look(self) -> None:
        at = time.monotonic()
        while not self._is_over.wait(_LOOK_S):
            now = time.monotonic()
            if now - at > _WORTH_NOTING_S:
                self._found.append((at, now - at - _LOOK_S))
            at = now
