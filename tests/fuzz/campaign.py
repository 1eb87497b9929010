"""How much was done so far, of which target, on which build: kept in a folder, to go on from there.

    FOLDER/state.json       by build and target: executions, processor seconds, the largest peak
    FOLDER/corpus/TARGET    what reached something new, for every later slice to begin with
    FOLDER/finds/           inputs that broke a law, and what was said about them

A run of hours is done in slices, each a process of its own. What a slice did is added when it has
ended; one that is cut off is not counted.
"""

from __future__ import annotations

import json
import mmap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What a process does at most before the next one takes its place.
SLICE_S = 60
SLICE_RUNS = 500_000
FLURRY_SLICE_RUNS = 5_000_000

FLURRY = 64  # executions of one call


def corpus_of(target: str) -> str:
    """Whose corpus a target begins with: a flurry shares that of the target it is a flurry of."""
    return target.removesuffix("-flurry")


class Counts:
    """Executions so far, and the processor time that the process took, microseconds."""

    BYTES = 16

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._shared = memoryview(mmap.mmap(file.fileno(), self.BYTES)).cast("Q")

    def add(self, executions: int) -> None:
        """Some more were done."""
        self._shared[0] += executions
        self._shared[1] = time.process_time_ns() // 1000


class Campaign:
    """Slices of many runs.

    Args:
        folder: where to keep the state.
        goals: executions by target, of all builds together.
        build: what the kernel was built with, now.
    """

    def __init__(self, folder: Path, goals: dict[str, int], build: str) -> None:
        self.folder = folder
        self._goals = goals
        self._build = build
        self._path = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        self._state: dict[str, dict[str, dict[str, Any]]] = {}
        if self._path.exists():
            self._state = json.loads(self._path.read_text())
        self._turns = list(goals)
        self._under_way = dict.fromkeys(goals, 0)
        self._begun = sum(row["slices"] for rows in self._state.values() for row in rows.values())

    def done(self, target: str) -> int:
        """Executions of a target so far, on all builds."""
        return sum(targets.get(target, {}).get("executions", 0) for targets in self._state.values())

    def begin(self) -> tuple[str, int, int] | None:
        """The next slice: target, executions at most, and a number of its own for the seed.

        Every target in turn; None when all there is to do is done or under way.
        """
        for target in [*self._turns]:
            left = self._goals[target] - self.done(target) - self._under_way[target]
            self._turns.remove(target)
            if left <= 0:
                continue
            self._turns.append(target)
            most = FLURRY_SLICE_RUNS if target.endswith("-flurry") else SLICE_RUNS
            runs = min(most, left)
            self._under_way[target] += runs
            self._begun += 1
            return target, runs, self._begun
        return None

    def end(self, target: str, asked: int, runs: int, cpu_s: float, peak_mb: int) -> None:
        """A slice is done: so many of the executions that it was asked for."""
        self._under_way[target] -= asked
        if target not in self._turns:
            self._turns.append(target)
        row = self._state.setdefault(self._build, {}).setdefault(
            target, {"executions": 0, "cpu_s": 0.0, "peak_mb": 0, "slices": 0}
        )
        row["executions"] += runs
        row["cpu_s"] = round(row["cpu_s"] + cpu_s, 1)
        row["peak_mb"] = max(row["peak_mb"], peak_mb)
        row["slices"] += 1
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(self._state, indent=1))
        fresh.replace(self._path)

    def keep_find(self, target: str, data: bytes, output: str) -> None:
        """An input that broke a law."""
        finds = self.folder / "finds"
        finds.mkdir(exist_ok=True)
        path = finds / f"{target}-{len(list(finds.glob('*.txt')))}"
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(output)

    def lines(self) -> Iterator[str]:
        """What was done, for people."""
        total = 0
        for build, rows in sorted(self._state.items()):
            for target, row in rows.items():
                total += row["executions"]
                rate = row["executions"] / max(row["cpu_s"], 0.1)
                yield (
                    f"{build:18} {target:14} {row['executions']:>12,} executions "
                    f"{row['cpu_s']:>9,.1f} s of processor time {rate:>9,.0f}/s "
                    f"peak {row['peak_mb']} MB"
                )
        goal = sum(self._goals.values())
        yield f"together {total:,} of {goal:,} executions"
