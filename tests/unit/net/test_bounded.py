import threading
import time

import pytest

from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net.bounded import call_within


def test_gives_what_the_call_gives():
    assert call_within(lambda: None, Deadline.after(5)) is None
    assert call_within(lambda: 7, Deadline.after(5)) == 7


def test_raises_what_the_call_raises():
    with pytest.raises(ZeroDivisionError):
        call_within(lambda: 1 / 0, Deadline.after(5))


def test_does_not_wait_beyond_the_deadline():
    release = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        call_within(lambda: release.wait(30), Deadline.after(0.05))
    assert time.monotonic() - began < 15
    release.set()


def test_calls_here_where_no_thread_begins_any_more(monkeypatch):
    """As while the interpreter ends, in Python 3.12's first releases."""

    def refuse(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert call_within(threading.current_thread, Deadline.after(5)) is threading.current_thread()
    with pytest.raises(RuntimeError, match="the call's own"):
        call_within(_fail, Deadline.after(5))


def _fail():
    raise RuntimeError("the call's own")
