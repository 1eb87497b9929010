"""What a process that stood still is forgiven, and what not."""

import ctypes
import time

import pytest

from tests.stopwatch import Stopwatch


@pytest.mark.slow
def test_what_the_process_stood_still_does_not_count_and_what_it_waited_does():
    with Stopwatch() as standing:
        began = time.monotonic()
        ctypes.PyDLL(None).usleep(300_000)  # which holds the interpreter, unlike a sleep
        assert time.monotonic() - began > 0.3
    assert standing.took_s < 0.15
    with Stopwatch() as waiting:
        time.sleep(0.3)
    assert waiting.took_s > 0.2
