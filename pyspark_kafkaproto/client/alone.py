"""A consumer or producer is for one thread at a time, of the process that made it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark_kafkaproto.client.process import check_process
from pyspark_kafkaproto.errors import LocalProtocolError


class Alone:
    """Who calls it has the thing alone, in a `with` block.

    Args:
        what: it is, for errors.
        nests: whether its thread may have it again in the midst of that, as callbacks do.
    """

    def __init__(self, what: str, *, nests: bool = True) -> None:
        self._what: Final = what
        self._process = os.getpid()
        self._in_use = threading.RLock()
        self._nests: Final = nests
        self._is_taken = False

    @property
    def is_a_copy(self) -> bool:
        """Whether this is a child process: what is kept here is its parent's."""
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Refuse children of the process that made it.

        Raises:
            LocalProtocolError: this is one.
        """
        check_process(self._what, self._process)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Refuse children of the process, and a second thread: two would mix up their answers.

        Raises:
            LocalProtocolError: somebody else has it, or this thread where that does not nest.
        """
        self.take()
        try:
            yield
        finally:
            self.give_back()

    def take(self) -> None:
        """Have it until `give_back`; errors as for the `with` block, which costs more."""
        self.check_process()
        if not self._in_use.acquire(blocking=False):
            raise LocalProtocolError(
                f"another thread uses this {self._what} at this moment: a {self._what} is for one "
                "at a time"
            )
        if self._is_taken and not self._nests:
            self._in_use.release()
            raise LocalProtocolError(
                f"this {self._what} is in the midst of another call of this thread: a handler of "
                "signals can note that it came, and whoever was called act on that afterwards"
            )
        self._is_taken = True

    def let_in(self) -> None:
        """Nothing is begun yet: calls in the midst of this one do no harm."""
        self._is_taken = False

    def give_back(self) -> None:
        """As often as it was taken."""
        self._is_taken = False
        self._in_use.release()
