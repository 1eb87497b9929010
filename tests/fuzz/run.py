"""Fuzz the decoders, guided by coverage (Atheris, libFuzzer): one command, bounded in time.

    python tests/fuzz/run.py                                all targets, a million runs together
    python tests/fuzz/run.py --target codec --seconds 600   one, for ten minutes
    python tests/fuzz/run.py --long                         100,000,000 runs together
    python tests/fuzz/run.py --long --state F --minutes 20  a part of them; F knows how far it came
    python tests/fuzz/run.py --target batch --keep          keep inputs that reach something new
    python tests/fuzz/run.py --target batch --input FILE    one input, to look into a find

Two kinds of targets. `targets.py` compares two implementations or two ways; `flurry.py` asks the
law alone of many changed inputs per call, some ten times as fast, and has most of the runs.

Needs the extra `fuzz` (pip install -e .[fuzz]). Ends with a line per target and how many executions
there were; a find ends it with exit code 1, the input in hex, and the seed that leads to it. How to
run it on a kernel with sanitizers: `sanitized.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzz.campaign import FLURRY, SLICE_S, Campaign, Counts, corpus_of  # noqa: E402  the path first

CORPUS = FOLDER / "corpus"

# Of all runs; the data plane is where bytes meet C. The slow ones, a twentieth of the runs, take
# half as much time as the flurries: a capture is shown in every way, six milliseconds each. Among
# flurries the one that makes blocks is slow, a tenth as fast as one that changes them.
SHARES = {
    "batch-flurry": 0.529,
    "made-flurry": 0.030,
    "codec-flurry": 0.256,
    "message-flurry": 0.130,
    "batch": 0.018,
    "codec": 0.010,
    "made": 0.001,
    "snap": 0.004,
    "message": 0.010,
    "frame": 0.011,
    "capture": 0.001,
}
# More than a million: a flurry of a short input is less than 64 executions.
SLICE_RUNS = 1_100_000
LONG_RUNS = 100_000_000
MAX_INPUT_BYTES = 1024
RSS_LIMIT_MB = 400  # one batch may have 64 KiB; the interpreter and its libraries take 60 MB
# A hang, by the wall's clock: a machine at work may stop a process for seconds. Slowness is the
# oracle's matter, by processor time; libFuzzer's own finds of it, after 10 s, are put off as far.
INPUT_TIMEOUT_S = 60


class Result(NamedTuple):
    """How a process that fuzzed one target ended."""

    target: str
    runs: int
    cpu_s: float
    spent_s: float
    peak_mb: int
    find: bytes | None
    output: str
    exit_code: int

    @property
    def is_good(self) -> bool:
        return self.exit_code == 0 and self.find is None


def fuzz(target: str, arguments: argparse.Namespace, runs: int, state: Path | None) -> Result:
    """Fuzz one target in a process of its own; with a state, its corpus is the one kept there."""
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{target}-") as name:
        folder, corpus = Path(name), corpus_of(target)
        found, finds, kept = folder / "found", folder / "finds", CORPUS / corpus
        finds.mkdir()
        counts = folder / "counts"
        counts.write_bytes(bytes(Counts.BYTES))
        if state is not None:
            found = state / "corpus" / corpus
        write_seeds(corpus, found)
        calls = runs if runs < 0 or target == corpus else -(-runs // FLURRY)
        began = time.monotonic()
        done = run_entry(
            target, [f"-runs={calls}", f"-max_total_time={arguments.seconds}",
                     f"-seed={arguments.seed}", f"-artifact_prefix={finds}/",
                     str(found), *([str(kept)] if kept.is_dir() else [])], counts,
        )  # fmt: skip
        spent_s = time.monotonic() - began
        if arguments.keep:
            keep(corpus, found)
        first = next(finds.iterdir(), None)
        executions, cpu_us = memoryview(counts.read_bytes()).cast("Q")
        return Result(
            target, executions, cpu_us / 1e6, spent_s, statistic(done.stderr, "peak_rss_mb"),
            first.read_bytes() if first else None, done.stdout + done.stderr, done.returncode,
        )  # fmt: skip


def write_seeds(target: str, folder: Path) -> None:
    from tests.fuzz.seeds import SEEDS

    folder.mkdir(parents=True, exist_ok=True)
    for index, seed in enumerate(SEEDS[target]()):
        (folder / f"seed-{index:04}").write_bytes(seed)


def run_entry(
    target: str, arguments: list[str], counts: Path | None = None
) -> subprocess.CompletedProcess[str]:
    limits = [f"-max_len={MAX_INPUT_BYTES}", f"-rss_limit_mb={RSS_LIMIT_MB}",
              f"-timeout={INPUT_TIMEOUT_S}", f"-report_slow_units={INPUT_TIMEOUT_S}",
              "-print_final_stats=1", "-verbosity=1"]  # fmt: skip
    # The sources here, by the Python that runs now, in the processes that libFuzzer starts too.
    environment = (
        os.environ
        | {"KAFKAPROTO_FUZZ": target}
        | ({} if counts is None else {"KAFKAPROTO_FUZZ_COUNTS": str(counts)})
        | {
            name: os.pathsep.join([str(first), os.environ.get(name, "")])
            for name, first in (("PYTHONPATH", ROOT), ("PATH", Path(sys.executable).parent))
        }
    )
    return subprocess.run(
        [sys.executable, str(FOLDER / "entry.py"), *limits, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip


def statistic(output: str, name: str) -> int:
    found = re.search(rf"stat::{name}:\s+(\d+)", output)
    return int(found[1]) if found else 0


def keep(target: str, found: Path) -> None:
    """Make the kept corpus anew: as few inputs as reach everything that was reached."""
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        fewest = Path(folder) / "fewest"
        fewest.mkdir()
        done = run_entry(target, ["-merge=1", str(fewest), str(kept), str(found)])
        if done.returncode or not any(fewest.iterdir()):
            raise SystemExit(f"the corpus of {target} was not merged:\n{done.stderr[-2000:]}")
        shutil.rmtree(kept)
        shutil.copytree(fewest, kept)


def report(results: list[Result], seed: int) -> None:
    for result in results:
        rate = result.runs / max(result.cpu_s, 0.1)
        print(
            f"{result.target:14} {result.runs:>11,} executions  {result.spent_s:7.1f} s, "
            f"{result.cpu_s:7.1f} s of processor time  {rate:>7,.0f}/s  "
            f"peak {result.peak_mb} MB  {'ok' if result.is_good else 'FIND'}"
        )
    print(f"together {sum(result.runs for result in results):>11,} executions, seed {seed}")
    report_finds(results)


def report_finds(results: list[Result]) -> None:
    for result in results:
        if not result.is_good:
            print(f"\n== {result.target}, exit code {result.exit_code}\n{result.output[-6000:]}")
            print(f"input: {result.find.hex() if result.find is not None else 'none was written'}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=list(SHARES), action="append", help="default: all")
    parser.add_argument("--runs", type=int, help="executions, shared among the targets")
    parser.add_argument("--seconds", type=int, default=0, help="per target; 0: runs alone bound it")
    parser.add_argument("--long", action="store_true", help=f"{LONG_RUNS:,} executions")
    parser.add_argument("--seed", type=int, default=20240229, help="of the random choices")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time")
    parser.add_argument("--keep", action="store_true", help="keep what reaches something new")
    parser.add_argument("--state", type=Path, help="a folder: go on from what was done there")
    parser.add_argument(
        "--minutes", type=float, default=1e6, help="with --state: begin no slice after"
    )
    parser.add_argument("--input", type=Path, help="run this one input")
    return parser.parse_args(arguments)


def without_atheris() -> int:
    """Say so: a mistake where it can be installed, else nothing to be done about."""
    if sys.platform == "linux" and os.uname().machine == "x86_64" and sys.version_info < (3, 14):
        print("Atheris is needed: pip install -e '.[fuzz]'", file=sys.stderr)
        return 2
    print("SKIPPED: there is no build of Atheris for this platform")
    return 0


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    targets = options.target or list(SHARES)
    if options.input:
        return run_input(targets, options.input)
    if importlib.util.find_spec("atheris") is None:
        return without_atheris()
    runs = options.runs or (LONG_RUNS if options.long else -1 if options.seconds else SLICE_RUNS)
    whole = sum(SHARES[target] for target in targets)
    shares = {t: -1 if runs < 0 else round(runs * SHARES[t] / whole) for t in targets}
    if options.state is not None:
        return run_campaign(options, shares)
    with ThreadPoolExecutor(options.processes) as pool:
        results = list(pool.map(lambda pair: fuzz(pair[0], options, pair[1], None), shares.items()))
    report(results, options.seed)
    return 0 if all(result.is_good for result in results) else 1


def run_input(targets: list[str], path: Path) -> int:
    """One input; a flurry says what it makes of it, before it reads that."""
    os.environ["KAFKAPROTO_FUZZ_SHOW"] = "1"
    from tests.fuzz.flurry import ALL_TARGETS

    for target in targets:
        ALL_TARGETS[target](path.read_bytes())
    return 0


def run_campaign(options: argparse.Namespace, goals: dict[str, int]) -> int:
    """Slices, until all is done, the time is over, or something was found."""
    build = os.environ.get("KAFKAPROTO_FUZZ_BUILD", "plain")
    campaign = Campaign(options.state, goals, build)
    last = time.monotonic() + 60 * options.minutes
    lock = threading.Lock()
    bad: list[Result] = []

    def work() -> None:
        while not bad:
            left_s = int(last - time.monotonic())
            with lock:
                begun = campaign.begin() if left_s > 0 else None
            if begun is None:
                return
            target, runs, number = begun
            bounds = argparse.Namespace(
                **vars(options) | {"seconds": min(left_s, SLICE_S), "seed": options.seed + number}
            )
            result = fuzz(target, bounds, runs, options.state)
            with lock:
                campaign.end(target, runs, result.runs, result.cpu_s, result.peak_mb)
                if not result.is_good:
                    bad.append(result)
                    campaign.keep_find(target, result.find or b"", result.output)

    with ThreadPoolExecutor(options.processes) as pool:
        for done in [pool.submit(work) for _ in range(options.processes)]:
            done.result()
    print("\n".join(campaign.lines()))
    report_finds(bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
