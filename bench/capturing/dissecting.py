"""`kafkaproto dissect` as a process of its own: how long it takes, and its peak of memory."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from reading.processes import RunFailed

_LOOK_S = 0.005
_SHOWN_CHARACTERS = 3000
# What the installed script does, of the package that this benchmark sees.
_COMMAND = [sys.executable, "-c", "from pyspark_kafkaproto.cli import main; main()", "dissect"]


@dataclass(frozen=True, slots=True)
class Dissected:
    """One run: from the start of the process to its end; peak_bytes: its largest resident size."""

    seconds: float
    peak_bytes: int
    lines: int


def dissect(capture: Path, output: Path, timeout_s: float) -> Dissected:
    """List the messages of `capture` into the file `output`.

    Raises:
        RunFailed: it failed, said something about the capture, or was not done in time.
    """
    with output.open("wb") as out:
        began = time.perf_counter()
        with subprocess.Popen(
            [*_COMMAND, str(capture)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            peak = _Peak(child.pid)
            try:
                _, said = child.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise RunFailed(f"not done within {timeout_s:g} s") from None
            finally:
                child.kill()
                peak_bytes = peak.stop()
        seconds = time.perf_counter() - began
    if child.returncode or said:
        raise RunFailed(said[-_SHOWN_CHARACTERS:] or f"it ended with {child.returncode}")
    with output.open("rb") as lines:
        return Dissected(seconds, peak_bytes, sum(1 for _ in lines))


class _Peak:
    """Looks at VmHWM, which only grows, until the process has ended.

    What the system counts for ended children includes the memory of whoever started them.
    """

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._is_over = Event()
        self._bytes = 0
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._is_over.set()
        self._thread.join()
        return self._bytes

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            try:
                status = self._status.read_text()
            except OSError:  # it has ended, and was waited for
                return
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    self._bytes = max(self._bytes, int(line.split()[1]) << 10)
