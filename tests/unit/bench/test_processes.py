from __future__ import annotations

import sys
from pathlib import Path

import pytest
from reading.processes import RunFailed, run

# Starts a process of its own, tells its number, and waits for ever.
_PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
open("child", "w").write(str(child.pid))
time.sleep(600)
"""


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks at /proc")
def test_what_is_late_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="not done within 4 s"):
        run([sys.executable, "-S", "-c", _PARENT], cwd=tmp_path, timeout_s=4)

    assert not _is_alive(int((tmp_path / "child").read_text()))


def test_what_fails_is_shown(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="broken"):
        run([sys.executable, "-S", "-c", "raise SystemExit('broken')"], cwd=tmp_path, timeout_s=60)


@pytest.mark.slow
def test_an_exit_code_can_be_an_answer(tmp_path: Path) -> None:
    done = run(
        [sys.executable, "-S", "-c", "print('out'); raise SystemExit(3)"],
        cwd=tmp_path,
        timeout_s=60,
        allowed=(0, 3),
    )

    assert (done.returncode, done.stdout) == (3, "out\n")


def test_bytecode_is_kept_as_that_of_an_installed_package_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    script = "import sys; print(sys.dont_write_bytecode)"
    done = run([sys.executable, "-S", "-c", script], cwd=tmp_path, timeout_s=60)

    assert done.stdout == "False\n"
