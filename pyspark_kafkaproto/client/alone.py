"""A consumer is for one thread at a time, of the process that made it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_kafkaproto.client.process import check_process
from pyspark_kafkaproto.errors import LocalProtocolError


class Alone:
    """Who calls it has the consumer alone, in a `with` block."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._in_use = threading.RLock()

    @property
    def is_a_copy(self) -> bool:
        """Whether this is a child process: what is kept here is its parent's."""
        return self._process != os.getpid()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Refuse children of the process, and a second thread: two would mix up their answers.

        Raises:
            LocalProtocolError: somebody else has it.
        """
        check_process("consumer", self._process)
        if not self._in_use.acquire(blocking=False):
            raise LocalProtocolError(
                "another thread uses this consumer at this moment: a consumer is for one at a time"
            )
        try:
            yield
        finally:
            self._in_use.release()
