"""A consumer or producer is for one thread at a time, of the process that made it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, ParamSpec, TypeVar

from pyspark_kafkaproto.client.process import check_process
from pyspark_kafkaproto.errors import LocalProtocolError

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Alone:
    """Who calls it has the thing alone, in a `with` block.

    Args:
        what: it is, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what: Final = what
        self._process = os.getpid()
        self._in_use: Final = threading.Lock()
        self._thread = 0  # that has it, or came at the same moment
        self._listening = 0  # the thread that has it, while that calls a listener
        self._call = self._in_use  # of the call under way; of a listener's own calls another one

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

    def __call__(self) -> AbstractContextManager[Any]:
        """Refuse children of the process, and a second thread: two would mix up their answers.

        A lock itself, which Python releases whatever a handler of signals raises, and when. Of two
        threads that come at the very same moment one waits.

        Raises:
            LocalProtocolError: somebody else has it, or this thread is in the midst of a call.
        """
        self.check_process()
        me = threading.get_ident()
        if not self._in_use.locked():
            self._thread = me
            # Whoever comes before us may be calling a listener by now: that one's lock is not ours.
            return self._in_use
        self._check_let_in(me)
        return self._call

    def letting_in(self, listener: Callable[_P, _T]) -> Callable[_P, _T]:
        """`listener`, which may call in the midst of the call that calls it, between two steps."""

        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            outer = self._call, self._listening
            self._call, self._listening = threading.Lock(), threading.get_ident()
            try:
                return listener(*args, **kwargs)
            finally:
                self._call, self._listening = outer

        return call

    def _check_let_in(self, me: int) -> None:
        """Refuse whoever is not called as a listener, by the thread that has it."""
        if me not in {self._thread, self._listening}:
            raise LocalProtocolError(
                f"another thread uses this {self._what} at this moment: a {self._what} is for one "
                "at a time"
            )
        if self._listening != me or self._call.locked():
            raise LocalProtocolError(
                f"this {self._what} is in the midst of another call of this thread: a handler of "
                "signals can note that it came, and whoever was called act on that afterwards"
            )
