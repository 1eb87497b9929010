"""Who may have a thing that is for one at a time."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from pyspark_kafkaproto.client import alone as alone_module
from pyspark_kafkaproto.client import process
from pyspark_kafkaproto.client.alone import Alone
from pyspark_kafkaproto.errors import LocalProtocolError
from tests.interrupted import Interrupted


def take(alone):
    with alone():
        pass


def test_a_call_that_is_refused_in_the_midst_of_another_holds_nobody_up():
    alone = Alone("thing")
    with alone(), pytest.raises(LocalProtocolError, match="in the midst"):
        take(alone)
    with ThreadPoolExecutor() as other:
        other.submit(take, alone).result()


def test_an_interrupt_at_the_begin_or_end_of_a_call_leaves_it_free():
    """Python looks for signals as functions begin: none of ours may be needed to give it back."""
    met, own = [], {alone_module.__file__, process.__file__, contextlib.__file__}
    for nth in count(1):
        alone = Alone("thing")
        try:
            with Interrupted(nth, own), alone():
                pass
        except KeyboardInterrupt as error:
            with alone():  # while the error is on its way, and holds all frames that it met
                met.append(error)
        else:
            break
    assert len(met) > 1


def test_a_listener_may_call_and_nobody_else_in_the_midst_of_the_call_that_calls_it():
    alone, met = Alone("thing"), []

    def listen(what):
        with alone():
            met.append(what)
            with pytest.raises(LocalProtocolError, match="in the midst"):
                take(alone)
        with ThreadPoolExecutor() as other, pytest.raises(LocalProtocolError, match="another"):
            other.submit(take, alone).result()
        raise ZeroDivisionError

    listener = alone.letting_in(listen)
    with alone():
        for what in range(2):
            with pytest.raises(ZeroDivisionError):
                listener(what)
            with pytest.raises(LocalProtocolError, match="in the midst"):
                take(alone)
    assert met == [0, 1]
    with ThreadPoolExecutor() as other:
        other.submit(take, alone).result()


def test_who_comes_at_the_same_moment_comes_into_no_call_of_a_listener():
    """It has seen that nobody was there, and goes on once the other is with its listener."""
    met, looked, is_listening = [], threading.Event(), threading.Event()

    class Slow:
        def __init__(self):
            self.lock, self.first = threading.Lock(), threading.get_ident()

        def __enter__(self):
            return self.lock.__enter__()

        def __exit__(self, *error):
            return self.lock.__exit__(*error)

        def locked(self):
            is_locked = self.lock.locked()
            if threading.get_ident() != self.first:
                looked.set()
                assert is_listening.wait(10)
            return is_locked

    alone = Alone("thing")
    alone._in_use = alone._call = Slow()

    def come():
        with alone():
            met.append("second")

    def listen():
        is_listening.set()
        second.join(0.2)
        with alone():  # whoever waits keeps no listener out
            met.append("listener")

    second = threading.Thread(target=come)
    second.start()
    assert looked.wait(10)
    with alone():
        alone.letting_in(listen)()
        met.append("first")
    second.join(10)
    assert met == ["listener", "first", "second"]
