"""Figures as Markdown tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from reading.bars import Bar
from reading.measures import Run
from reading.workloads import Workload


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that reads well as plain text too: the first column to the left, others right."""
    cells = [tuple(header), *map(tuple, rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def workload_table(workload: Workload, runs: dict[str, list[Run] | str]) -> str:
    """One row per measure: medians over the rounds, fastest and slowest round beside them."""
    header = (f"{workload.name}, {workload.records:,} records", "records/s", "MB/s", "median s")
    return markdown((*header, "from … to s"), (_row(workload, *item) for item in runs.items()))


def rate(runs: Sequence[Run]) -> float:
    """Records per second, the median of the rounds."""
    return median(run.records / run.seconds for run in runs)


def _row(workload: Workload, name: str, runs: list[Run] | str) -> tuple[str, ...]:
    if isinstance(runs, str):
        return (name, runs, "", "", "")
    seconds = [run.seconds for run in runs]
    times = (f"{median(seconds):.2f}", f"{min(seconds):.2f} to {max(seconds):.2f}")
    per_second = rate(runs)
    if not per_second:
        return (name, "", "", *times)
    megabytes = per_second * workload.value_bytes / 1e6
    return (name, f"{per_second:,.0f}", f"{megabytes:,.0f}", *times)


def bar_table(bars: Sequence[Bar]) -> str:
    """Every bar with what is needed and what was measured."""
    return markdown(("bar", "needed", "measured", ""), (bar.shown() for bar in bars))
