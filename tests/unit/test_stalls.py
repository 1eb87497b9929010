"""What a process that stood still is forgiven, and what not."""

import ctypes
import time

import pytest

from tests.stalls import Stalls


@pytest.mark.slow
def test_what_the_process_stood_still_does_not_count_and_what_it_waited_does():
    with Stalls() as stalls:
        began = time.monotonic()
        ctypes.PyDLL(None).usleep(300_000)  # which holds the interpreter, unlike a sleep
        took_s = stalls.took(began)
        assert time.monotonic() - began > 0.3
        assert took_s < 0.15
        began = time.monotonic()
        time.sleep(0.3)
        assert stalls.took(began) > 0.2
