"""Threads that an interrupt of who gives them work, or the end of the process, does not hold up."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client import threads
from pyspark_kafkaproto.client.threads import Threads, Work
from tests.interrupted import Interrupted

UNCLOSED = """
import time
from pyspark_kafkaproto.client.threads import Threads, Work

class Reader:
    def __init__(self):
        self.work, self.threads = Work(lambda: time.sleep(0.2)), Threads(1, "t")
        self.threads.give(self.work)
        self.itself = self

    def __del__(self):
        if not self.work.cancel():
            self.work.exception()

reader = Reader()
"""


@pytest.mark.slow
def test_a_process_ends_whose_reader_nobody_closed():
    """Collected at the very end it waited for a thread that was halted by then."""
    done = subprocess.run([sys.executable, "-c", UNCLOSED], timeout=30, check=False)
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 40))
def test_wherever_who_gives_work_is_interrupted_it_is_done_or_taken_back(nth):
    work, pool = Work(int), Threads(1, "t")
    files = {threads.__file__, threading.__file__}
    # RuntimeError: what becomes of an interrupt in `Thread.start`, once for each thread.
    with suppress(KeyboardInterrupt, RuntimeError), Interrupted(nth, files, behind_c=True):
        pool.give(work)
        work.result()
    waits = threading.Thread(target=lambda: work.cancel() or work.result(), daemon=True)
    waits.start()
    waits.join(5.0)
    assert not waits.is_alive()
