"""Tests that fork, and pieces of a test in a child process that is forked from it."""

from __future__ import annotations

import os
import signal
import time
import warnings

from pyspark_kafkaproto.net import Deadline


def fork():
    """`os.fork` without Python's warning of threads: a fake broker's, numpy's. None goes along."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def in_child(work):
    """The exit status of a child process that did `work`: 1 where it raised, -9 where it hung."""
    child = fork()
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
