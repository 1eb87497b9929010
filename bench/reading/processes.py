"""Child processes: each in a session of its own, all of them ended by whoever started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any, Self

BENCH = Path(__file__).resolve().parent.parent
_GRACE_S = 20.0
_SHOWN_CHARACTERS = 3000


class RunFailed(Exception):
    """A program of the benchmark failed; the text has what it printed."""


def run(
    arguments: Sequence[str], *, cwd: Path, timeout_s: float, allowed: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    Raises:
        RunFailed: another exit code than those allowed, or not done in time.
    """
    with subprocess.Popen(
        arguments,
        cwd=cwd,
        env=_environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"not done within {timeout_s:g} s") from None
        finally:
            _end_group(child)
    if child.returncode not in allowed:
        raise RunFailed((out + err).strip()[-_SHOWN_CHARACTERS:])
    return subprocess.CompletedProcess(arguments, child.returncode, out, err)


def python_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this benchmark."""
    return [sys.executable, "-m", module, *arguments]


class SparkApp:
    """A `reading.spark_app`, or another `module` like it, that is spoken to.

    Args:
        conf_dir: SPARK_CONF_DIR: an empty folder for stock settings.
        conf: settings on top.
        folder: for its log and its files; its own.
        timeout_s: how long one command may take; the application is killed then.
    """

    def __init__(
        self,
        conf_dir: Path,
        conf: Mapping[str, str],
        folder: Path,
        timeout_s: float = 1800.0,
        module: str = "reading.spark_app",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "spark.log"
        self._timeout_s = timeout_s
        with self._log.open("w") as log:
            self._child = subprocess.Popen(
                python_module(module, json.dumps(dict(conf))),
                cwd=folder,
                env=_environment(
                    {"SPARK_CONF_DIR": str(conf_dir), "SPARK_LOCAL_DIRS": str(folder)}
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            self.version = self._answer()["version"]
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def ask(self, do: str, source: str = "", options: Mapping[str, str] | None = None) -> Any:
        """Run one command and return its answer.

        Raises:
            RunFailed: it failed, with Spark's reason.
        """
        command: dict[str, Any] = {"do": do}
        if source:
            command |= {"source": source, "options": dict(options or {})}
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        """End it, by the end of its input if it is listening, else by force."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            with suppress(BrokenPipeError):  # it has ended already
                self._child.stdin.close()
        try:
            with suppress(subprocess.TimeoutExpired):  # it is in the middle of something
                self._child.wait(_GRACE_S)
        finally:
            _end_group(self._child)
        if self._child.stdout is not None:
            self._child.stdout.close()

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        alarm = Timer(self._timeout_s, _end_group, (self._child,))
        alarm.start()
        try:
            line = self._child.stdout.readline()
        finally:
            alarm.cancel()
        if not line:
            shown = self._log.read_text(errors="replace")[-_SHOWN_CHARACTERS:]
            raise RunFailed(f"the Spark application ended:\n{shown}")
        answer = json.loads(line)
        if "error" in answer:
            raise RunFailed(answer["error"][:_SHOWN_CHARACTERS])
        return answer


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Ours, with this benchmark importable here and in Spark's workers.

    Bytecode is kept, as that of an installed package is: where the environment forbids it, each
    Python process that Spark starts would compile this checkout anew (0.2 s of CPU). numpy, which
    pyarrow imports, starts no threads of its BLAS, as in Spark's workers, where Spark sees to it:
    each spins for a tenth of a second, long after the import, which is not to be measured.
    """
    path = os.pathsep.join(filter(None, [str(BENCH), os.environ.get("PYTHONPATH")]))
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SPARK_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    ours = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1"}
    return kept | ours | more


def _end_group(child: subprocess.Popen[str]) -> None:
    """End the child and what it started and has left: politely first, by force where that fails.

    The group is the child's own (it leads its session), so its number is nobody else's for as long
    as any member lives.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        _wait_for_group(child)
    child.wait()


def _wait_for_group(child: subprocess.Popen[str]) -> None:
    """Return when no member lives, or after the grace time."""
    stop_at = time.monotonic() + _GRACE_S
    while time.monotonic() < stop_at:
        child.poll()
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
