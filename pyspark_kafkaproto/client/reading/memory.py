"""The memory that a reader's answers are received into: one piece for all of them.

What a reader leaves, the next one of this process has: to touch new pages takes about as long as
decoding what comes into them. It is asked of the system and not of malloc, among whose blocks large
ones that come and go leave holes as large. Knows nothing of answers.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

_MOST_SPARE_BYTES = 16 << 20
# One at most: tasks come one after the other. Threads that meet here never share what is in it, as
# it is taken out before it is looked at.
_spare: deque[mmap] = deque(maxlen=1)


class AnswerMemory:
    """Memory for one answer at a time, as large as the largest so far."""

    def __init__(self) -> None:
        self._pages: mmap | None = None

    def take(self, size_bytes: int) -> memoryview:
        """So many bytes, whatever is in them; those that were taken before are overwritten."""
        if self._pages is None:
            with suppress(IndexError):  # none, or another thread was quicker
                self._pages = _spare.pop()
        if self._pages is None or size_bytes > len(self._pages):
            self._pages = None  # gone before there is more
            self._pages = mmap(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS)
        return memoryview(self._pages)[:size_bytes]

    def leave(self) -> None:
        """Nobody looks at what was taken any more."""
        pages, self._pages = self._pages, None
        if pages is None or len(pages) > _MOST_SPARE_BYTES:
            return
        with suppress(IndexError):
            pages = max(pages, _spare.pop(), key=len)
        _spare.append(pages)
