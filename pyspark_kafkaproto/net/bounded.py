"""Blocking calls that know no time-out (name look-ups, callbacks), given one by a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from pyspark_kafkaproto.net.deadline import Deadline

_T = TypeVar("_T")


def call_within(call: Callable[[], _T], deadline: Deadline) -> _T:
    """What `call` gives or raises; TimeoutError when it has not ended at the deadline.

    It then goes on in its thread, which nobody waits for: there is no way to end it. Where no
    thread can be had, the call is made here, however long it takes.
    """
    outcome: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            outcome.put((None, error))

    try:
        threading.Thread(target=run, name="kafkaproto-bounded-call", daemon=True).start()
    except RuntimeError:  # none begins any more, as while the interpreter of Python 3.12.1 ends
        return call()
    try:
        result, error = outcome.get(timeout=deadline.remaining_s)
    except queue.Empty:
        raise TimeoutError(f"no answer within {deadline.timeout_s:.3g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only where the call itself gave it
