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
    """

    def __init__(self, what: str) -> None:
        self._what: Final = what
        self._process = os.getpid()
        self._in_use = threading.RLock()

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
            LocalProtocolError: somebody else has it.
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

    def give_back(self) -> None:
        """As often as it was taken."""
        self._in_use.release()
