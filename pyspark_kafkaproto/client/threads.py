"""Threads that work something off, for who may be interrupted wherever they are given work.

Python's own pools take locks in functions of Python. An interrupt (Ctrl-C) there leaves one taken
for ever: a thread waited for it, and whoever ended the pool for the thread. What is shared here
goes through single steps in C.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

_PATIENCE_S: Final = 5.0  # as the process ends: what is done takes some milliseconds
_TAKER, _THREAD, _BY = "who gave it", "a thread", "by"


class Work:
    """Something to do, once: by a thread, or by whoever has taken it back.

    Args:
        run: does it.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self._run: Callable[[], None] | None = run  # what it holds goes with it
        self._taken: dict[str, str] = {}
        self._error: BaseException | None = None
        self._is_done = False
        self._end = threading.Lock()  # let go of at the end, for one to wait
        self._end.acquire()

    def cancel(self) -> bool:
        """Have no thread begin with it, now or before; False: one has."""
        is_ours = self._taken.setdefault(_BY, _TAKER) is _TAKER
        if is_ours:
            self._run = None
        return is_ours

    def done(self) -> bool:
        """Whether a thread is done with it."""
        return self._is_done

    def result(self) -> None:
        """Return once a thread is done with it, or raise the error that it met."""
        error = self.exception()
        if error is not None:
            raise error

    def exception(self, timeout_s: float | None = None) -> BaseException | None:
        """Wait until a thread is done with it; the error that it met."""
        if not self._is_done:
            self._end.acquire(timeout=-1 if timeout_s is None else timeout_s)
        return self._error

    def begin(self) -> None:
        """Do it, in a thread, unless it was taken back."""
        run = self._run
        if self._taken.setdefault(_BY, _THREAD) is not _THREAD or run is None:
            return
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._error = error
        self._run = None
        self._is_done = True
        self._end.release()


_Line = SimpleQueue[Work | None]


class Threads:
    """At most so many, begun as there is work; they end with it, or as it is garbage.

    Args:
        most: how many.
        name: of each, with a number behind.
        begun: called in each as it begins.
    """

    def __init__(self, most: int, name: str, begun: Callable[[], object] = int) -> None:
        self._most: Final = most
        self._name = name
        self._begun = begun
        self._own: list[threading.Thread] = []
        self._line: _Line = SimpleQueue()
        self._has_ended = False
        _every.add(self)

    def give(self, work: Work) -> None:
        """Have a thread do it.

        Raises:
            RuntimeError: there is no thread to be had.
        """
        if self._has_ended:
            raise RuntimeError("the process ends")
        if len(self._own) < self._most:
            name, args = f"{self._name}_{len(self._own)}", (self._line, self._begun)
            thread = threading.Thread(target=_work_off, args=args, name=name, daemon=True)
            self._own.append(thread)
            thread.start()
        self._line.put(work)

    def end(self) -> None:
        """Begin with nothing more."""
        self._has_ended = True
        self._line.put(None)

    def __del__(self) -> None:
        if "_line" in vars(self):  # an interrupt may have kept it from that
            self.end()

    def join(self) -> None:
        """Wait for what they are at."""
        for thread in self._own:
            if thread.ident is not None:
                thread.join(_PATIENCE_S)


_every: Final = weakref.WeakSet[Threads]()


@atexit.register
def _end_all() -> None:
    """Once the interpreter ends it halts these threads, and who waits for them would for ever."""
    for one in list(_every):
        one.end()
    for one in list(_every):
        one.join()


def _work_off(line: _Line, begun: Callable[[], object]) -> None:
    begun()
    while (work := line.get()) is not None:
        work.begin()
        del work  # what it holds is not to be kept until there is more
    line.put(None)  # for the next one
