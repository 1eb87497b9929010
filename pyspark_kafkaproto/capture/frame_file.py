"""A capture on a disk that may be full: the file ends with its last whole block."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO


class FrameFile:
    """Takes frames until it cannot; then it says so once, and nothing more is written.

    Args:
        file: where they go, without a buffer: what could not be written must not be tried again.
        on_error: told why it takes no more, once.
    """

    def __init__(self, file: BinaryIO, on_error: Callable[[OSError], object]) -> None:
        self._file = file
        self._on_error = on_error
        self._lock = threading.Lock()
        self._is_over = False

    def write(self, data: bytes) -> None:
        """All of `data`, or nothing."""
        with self._lock:
            if self._is_over:
                return
            written = 0
            try:
                while written < len(data):
                    written += self._file.write(memoryview(data)[written:])
            except OSError as error:
                self._is_over = True
                self._cut(written)
                self._on_error(error)

    def _cut(self, size: int) -> None:
        """Take so many bytes off the end, where that can be; a pipe keeps them."""
        with suppress(OSError):
            if size:
                self._file.truncate(self._file.tell() - size)
        with suppress(OSError):
            self._file.close()

    def close(self, wait_s: float = 1.0) -> None:
        """Take no more. A write that is stuck in a pipe is left alone after `wait_s`."""
        if self._lock.acquire(timeout=wait_s):
            self._is_over = True
            with suppress(OSError):
                self._file.close()
            self._lock.release()
