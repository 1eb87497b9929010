"""How long something took, but for moments in which the whole process stood still."""

from __future__ import annotations

import threading
import time
from typing import Self

_LOOK_S = 0.01
_WORTH_NOTING_S = 0.06


class Stopwatch:
    """Looks, inside a `with`, whether the process gets on.

    Attributes:
        took_s: once it is over, the seconds inside but for those in which the process stood still.
    """

    took_s: float

    def __init__(self) -> None:
        self._stalls: list[tuple[float, float]] = []  # when it was seen last, and for how long not
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        ended = time.monotonic()
        time.sleep(2 * _LOOK_S)  # a stall that has just ended is seen, too
        self._is_over.set()
        self._thread.join()
        self.took_s = ended - self._began - self.stalled_s(self._began, ended)

    def stalled_s(self, began: float, ended: float) -> float:
        """Seconds between the two (time.monotonic) in which it stood still; a little more."""
        return sum(away_s for at, away_s in self._stalls if began - away_s <= at <= ended)

    def _look(self) -> None:
        at = time.monotonic()
        while not self._is_over.wait(_LOOK_S):
            now = time.monotonic()
            if now - at > _WORTH_NOTING_S:
                self._stalls.append((at, now - at - _LOOK_S))
            at = now
