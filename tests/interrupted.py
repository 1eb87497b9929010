"""Interrupts at a chosen point: Python looks for signals as functions begin."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FrameType
from typing import Any


class Interrupted:
    """A `with` block that a KeyboardInterrupt meets as the nth function in it begins.

    Args:
        nth: counted from 1; beyond the last one nothing is met.
        files: only functions of these are counted.
    """

    def __init__(self, nth: int, files: Collection[str]) -> None:
        self._left = nth
        self._files = files
        self._before = sys.gettrace()

    def __enter__(self) -> None:
        sys.settrace(self._interrupt)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _interrupt(self, frame: FrameType, event: str, _: Any) -> None:
        self._left -= event == "call" and frame.f_code.co_filename in self._files
        if not self._left:
            raise KeyboardInterrupt
