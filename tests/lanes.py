"""The tests that need brokers, in two processes side by side.

    python tests/lanes.py "not long" "broker or spark or fault"

The arguments are pytest's expressions: what every test must be, and which ones need a broker. Those
marked `fault` have a lane of their own: they mostly wait, for brokers that were killed to be missed
and to come back, while the others mostly work. Each lane starts a broker and Spark of its own, and
that costs less than the waiting. What the waiting lane prints comes when the working one has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C has ended


def main(wanted: str, needs_broker: str) -> int:
    """Run both; the exit code of the first that failed."""
    every = f"{wanted} and ({needs_broker})"
    return side_by_side(pytest(f"{every} and fault"), pytest(f"{every} and not fault"))


def pytest(expression: str) -> list[str]:
    """The command for the tests that an expression names."""
    return [sys.executable, "-m", "pytest", "-q", "-m", expression]


def side_by_side(kept: Sequence[str], shown: Sequence[str]) -> int:
    """Run two commands to their ends, what one prints kept until the other has ended.

    Ctrl-C reaches both of them, and this: it waits until they have put their brokers away.
    """
    with tempfile.TemporaryFile() as output:
        processes = [
            subprocess.Popen(shown),
            subprocess.Popen(kept, stdout=output, stderr=subprocess.STDOUT),
        ]
        codes = [ended(process) for process in processes]
        output.seek(0)
        sys.stdout.write(output.read().decode(errors="replace"))
    return next((code for code in codes if code), 0)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait, through any Ctrl-C too; the exit code."""
    interrupted = 0
    while True:
        try:
            return process.wait() or interrupted
        except KeyboardInterrupt:
            interrupted = INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
