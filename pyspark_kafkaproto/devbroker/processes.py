"""Processes that outlive the one that started them: telling them apart, ending them.

A process number alone is no name: the system gives it to others later. Together with the moment
the process began it is one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

_PROC = Path("/proc")
_PAUSE_S = 0.02
_WATCH_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, named so that a later one with the same number is not taken for it."""

    pid: int
    began: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process with this number; None when there is none, or it has ended unreaped."""
        began = _began(pid)
        return None if began is None else cls(pid, began)

    @property
    def is_alive(self) -> bool:
        """Whether just this process still runs."""
        return _began(self.pid) == self.began

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        if self.is_alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return  # it ended between the two lines

    def end(self, grace_s: float) -> None:
        """Ask the process to end, and kill it when it has not done so after `grace_s` seconds."""
        self.signal(signal.SIGTERM)
        if not self.wait(grace_s):
            self.signal(signal.SIGKILL)
            self.wait(grace_s)

    def wait(self, timeout_s: float) -> bool:
        """Whether the process has ended before `timeout_s` seconds went by."""
        stop_at = time.monotonic() + timeout_s
        while self.is_alive:
            if time.monotonic() > stop_at:
                return False
            time.sleep(_PAUSE_S)
        return True


@contextmanager
def ending_with_us(pid: int) -> Iterator[None]:
    """While the block runs, `pid` ends with the calling process, however that ends."""
    watchdog = start_watchdog(pid)
    try:
        yield
    finally:
        watchdog.terminate()
        watchdog.wait()


def end_with_starter() -> None:
    """Have the calling process end as soon as the one that started it has ended.

    For a driver: Spark's Java, killed, leaves it behind, and with it all that it holds.
    """
    starter = os.getppid()

    def watch() -> None:
        while os.getppid() == starter:
            time.sleep(_WATCH_PAUSE_S)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, name="end-with-starter", daemon=True).start()


def start_watchdog(pid: int) -> subprocess.Popen[bytes]:
    """Start a process that ends `pid` as soon as the calling process has ended, however it ended.

    Linux could do that alone (PR_SET_PDEATHSIG), but it counts the death of the *thread* that
    started the child; this works on every POSIX system and from any thread.
    """
    watchdog = Path(__file__).with_name("watchdog.py")
    return subprocess.Popen(  # noqa: S603 - no shell, our own interpreter and file
        [sys.executable, "-I", "-S", str(watchdog), str(pid), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _began(pid: int) -> str | None:
    if _PROC.joinpath("self", "stat").exists():
        return _began_by_proc(pid)
    return _began_by_ps(pid)


def _began_by_proc(pid: int) -> str | None:
    """State and start time in clock ticks since boot, the 3rd and 22nd field of proc(5)'s stat."""
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = _PROC.joinpath("sys", "kernel", "random", "boot_id").read_text("ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The 2nd field is the program's name, which may hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else f"{boot}:{fields[19]}"


def _began_by_ps(pid: int) -> str | None:
    shown = subprocess.run(  # noqa: S603 - no shell, a fixed program and a number
        ["ps", "-o", "state=,lstart=", "-p", str(pid)],  # noqa: S607 - `ps` is POSIX, where PATH says
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    state, _, began = shown.partition(" ")
    return None if not began or state.startswith("Z") else began.strip()
