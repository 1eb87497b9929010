"""How fast does `kafkaproto dissect` list a large capture, and in how much memory?

    python bench/captures.py              five captures of 1 GB, one of 100 MB; three rounds
    python bench/captures.py --mb 20      small ones: does everything run?

Each capture is made of one kind of message, the last of all of them, in Ethernet frames as tcpdump
writes them, and deleted before the next is made. Small messages alone have no bar of speed, as
they have no records that could be left alone; theirs is the capture of 100 MB. The command runs as
a process with its list going to a file; its time is all of it, from the start of Python. Needs
Linux (/proc), and room for one capture in the folder for temporary files; the capture is read from
the system's cache.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from capturing.dissecting import Dissected, dissect
from capturing.traffic import Mix, Written, mixes, write_capture
from reading.bars import Bar
from reading.processes import RunFailed
from reading.tables import bar_table, markdown

MB = 1_000_000
RATE_MB = 100
PEAK_MB = 300
TIMEOUT_S = 900.0
_HEADER = ("capture", "messages", "MB/s", "messages/s", "median s", "from … to s", "peak MB")


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = [mix for mix in mixes() if any(part in mix.name for part in options.only)]
    rows, bars = [], []
    try:
        for mix in chosen:
            written, runs = measured(mix, round(options.mb * MB * mix.share), options.rounds)
            rows.append(row(mix, written, runs))
            bars += bars_of(mix, written, runs)
    except KeyboardInterrupt:
        print("interrupted: what was made is deleted", file=sys.stderr)
        return 130
    except RunFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(markdown(_HEADER, rows), bar_table(bars), sep="\n\n")
    if options.mb < 1000:
        print("\nSmall captures: the start of the process weighs more than the bars allow for.")
    return 0


def measured(mix: Mix, size_bytes: int, rounds: int) -> tuple[Written, list[Dissected]]:
    """Make a capture, list it `rounds` times after once for warmth, delete it.

    Raises:
        RunFailed: the command failed, or listed another number of messages than were written.
    """
    with tempfile.TemporaryDirectory(prefix="bench-captures-") as name:
        capture = Path(name) / "talk.pcap"
        progress(f"{mix.name}: writing {size_bytes // MB:,} MB")
        written = write_capture(capture, mix, size_bytes)
        runs = []
        for number in range(rounds + 1):
            progress(f"{mix.name}: round {number} of {rounds}")
            runs.append(dissect(capture, Path(name) / "list.txt", TIMEOUT_S))
            if runs[-1].lines != written.messages:
                raise RunFailed(f"{mix.name}: {runs[-1].lines} lines of {written.messages}")
    return written, runs[1:]


def row(mix: Mix, written: Written, runs: Sequence[Dissected]) -> tuple[str, ...]:
    """One capture's figures."""
    seconds = [run.seconds for run in runs]
    return (
        mix.name,
        f"{written.messages:,}",
        f"{rate_mb(written, runs):,.0f}",
        f"{written.messages / median(seconds):,.0f}",
        f"{median(seconds):.2f}",
        f"{min(seconds):.2f} to {max(seconds):.2f}",
        f"{peak_mb(runs):.0f}",
    )


def bars_of(mix: Mix, written: Written, runs: Sequence[Dissected]) -> list[Bar]:
    """Memory for all; speed where there are records that are not opened."""
    bars = [Bar(f"{mix.name}: peak of memory", PEAK_MB, peak_mb(runs), "MB", is_limit=True)]
    if mix.has_records:
        bars.append(Bar(f"{mix.name}: listing", RATE_MB, rate_mb(written, runs), "MB/s"))
    return bars


def rate_mb(written: Written, runs: Sequence[Dissected]) -> float:
    """Megabytes of the file in a second, by the median of the rounds."""
    return written.size_bytes / MB / median(run.seconds for run in runs)


def peak_mb(runs: Sequence[Dissected]) -> float:
    """The highest of the rounds."""
    return max(run.peak_bytes for run in runs) / MB


def progress(text: str) -> None:
    """What is being done."""
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mb", type=int, default=1000, help="size of each capture (default 1000)")
    add("--rounds", type=int, default=3, help="kept rounds (default 3); one more warms up")
    add("--only", type=lambda text: text.split(","), default=("",), help="parts of captures' names")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
