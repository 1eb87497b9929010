"""The tests that need brokers, in two processes side by side.

    python tests/lanes.py "not long"

Those of one lane mostly wait, for brokers that were killed to be missed and to come back; those of
the other mostly work. What is costly to start is used by one of them alone. The argument is a
pytest expression that each test must satisfy besides. What the second lane prints comes when the
first has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

WAITING = "fault"
WORKING = "(broker or spark or differential) and not fault"


def main(wanted: str) -> int:
    """Run both; the exit code of the first that failed."""
    with tempfile.TemporaryFile() as kept:
        waiting = subprocess.Popen(pytest(wanted, WAITING), stdout=kept, stderr=subprocess.STDOUT)
        try:
            worked = subprocess.run(pytest(wanted, WORKING), check=False).returncode
            waited = waiting.wait()
        finally:  # Ctrl-C reaches both: each puts its brokers away
            waiting.wait()
            kept.seek(0)
            sys.stdout.write(kept.read().decode(errors="replace"))
    return worked or waited


def pytest(wanted: str, lane: str) -> list[str]:
    """The command of a lane."""
    return [sys.executable, "-m", "pytest", "-q", "-m", f"{wanted} and ({lane})"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
