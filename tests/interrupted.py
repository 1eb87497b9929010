"""Interrupts at a chosen point: Python looks for signals as functions begin, and behind C's."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection
from types import FrameType
from typing import Any


class Interrupted:
    """A `with` block that a KeyboardInterrupt meets as the nth function in it begins.

    Args:
        nth: counted from 1; beyond the last one nothing is met.
        files: only functions of these are counted.
        behind_c: the ends of functions in C that they call are counted, too.
    """

    def __init__(self, nth: int, files: Collection[str], *, behind_c: bool = False) -> None:
        self._left = nth
        self._files = files
        self._set, self._before = (
            (sys.setprofile, sys.getprofile()) if behind_c else (sys.settrace, sys.gettrace())
        )

    def __enter__(self) -> None:
        gc.disable()  # generators that it closes are functions, too, whose errors nobody hears of
        self._set(self._interrupt)

    def __exit__(self, *_: object) -> None:
        self._set(self._before)
        gc.enable()

    def _interrupt(self, frame: FrameType, event: str, _: Any) -> None:
        self._left -= event in {"call", "c_return"} and frame.f_code.co_filename in self._files
        if not self._left:
            raise KeyboardInterrupt
