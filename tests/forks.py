"""A piece of a test in a child process that is forked from it."""

from __future__ import annotations

import os
import signal
import time
import warnings

from pyspark_kafkaproto.net import Deadline


def in_child(work):
    """The exit status of a child process that did `work`: 1 where it raised, -9 where it hung."""
    with warnings.catch_warnings():
        # Python 3.12 warns of threads at a fork; the fake broker's ones stay with the parent.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    deadline = Deadline.after(10)
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if deadline.has_passed:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(ended[1])
