"""The memory that a reader's answers are received into: one piece for all of them.

What a reader leaves, the next one of this process has: to fill new pages with zeros and to touch
them takes about as long as decoding what comes into them. Knows nothing of answers.
"""

from __future__ import annotations

from contextlib import suppress

_MOST_SPARE_BYTES = 16 << 20
_spare: list[bytearray] = []  # one at most: tasks come one after the other


class AnswerMemory:
    """Memory for one answer at a time, as large as the largest so far."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def take(self, size_bytes: int) -> memoryview:
        """So many bytes, whatever is in them; those that were taken before are overwritten."""
        if not self._buffer:
            with suppress(IndexError):  # none, or another thread was quicker
                self._buffer = _spare.pop()
        if size_bytes > len(self._buffer):
            self._buffer = bytearray(size_bytes)
        return memoryview(self._buffer)[:size_bytes]

    def leave(self) -> None:
        """Nobody looks at what was taken any more."""
        if len(self._buffer) <= _MOST_SPARE_BYTES:
            _spare[:] = [max((*_spare, self._buffer), key=len)]
        self._buffer = bytearray()
