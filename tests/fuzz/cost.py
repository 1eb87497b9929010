"""What reading any bytes may cost: time by their size, memory by a limit of the process.

Looking at a clock for every input would take as long as decoding a small one does. Many are
measured together; only when all of them took what one alone may take is each looked at.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager

from tests.fuzz.oracle import allowed_s

# Of a process's peak, by inputs read one after the other. What is kept from one batch to the next
# (`_memory.pyx`, 16 MiB) and the codecs' windows, which are brought in once, are in it.
GROWN_KIB_MAX = 64 << 10


class TooDear(AssertionError):
    """What was read took more memory than it may."""


class MaybeSlow(Exception):
    """All inputs took what one may take: one of them did, or each took its part."""


@contextmanager
def bounded(smallest: int = 0):
    """Inputs of at least `smallest` bytes are read in here, many of them: all in the time of one.

    Raises:
        TooDear: the process grew.
        MaybeSlow: they took longer: `assert_each_in_time` tells.
    """
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    yield
    spent_s = time.process_time() - began
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib
    if grown_kib > GROWN_KIB_MAX:
        raise TooDear(f"the process grew by {grown_kib} KiB")
    if spent_s > allowed_s(smallest):
        raise MaybeSlow(f"{spent_s} s")


def assert_each_in_time(read: Callable[[bytes], None], inputs: Iterable[bytes]) -> None:
    """Read each input under a clock of its own."""
    for data in inputs:
        began = time.process_time()
        read(data)
        spent_s = time.process_time() - began
        assert spent_s < allowed_s(len(data)), f"{spent_s} s for {len(data)} bytes: {data.hex()}"
