"""How much memory a reading Python worker of Spark takes, above one that has its batches already.

Each figure is the highest VmHWM among the workers of a fresh Spark application that has read one
topic once: two applications per workload, one that reads and one that yields prebuilt batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from reading.bars import Bar, growth_bar, memory_bar
from reading.measures import CEILING, OURS, Place, spark_options
from reading.processes import SparkApp
from reading.tables import markdown
from reading.workloads import Topics, Workload

_TIMES = 10
_HEADER = (
    "peak of a Python worker, MiB",
    "ours",
    "prebuilt",
    "difference",
    "largest block",
    "largest batch",
)


def measure(
    place: Place,
    topics: Topics,
    workloads: Sequence[Workload],
    conf: Mapping[str, str],
    rounds: int,
) -> tuple[str, list[Bar]]:
    """Peaks of all workloads, and their growth with ten times the records of the last small one.

    Returns:
        The table and the bars.
    """
    rows, bars = [], []
    for workload in workloads:
        topics.make(workload)
        sizes = place.write_shape(workload)
        ours = _peak_bytes(place, workload, OURS, conf, rounds)
        prebuilt = _peak_bytes(place, workload, CEILING, conf, rounds)
        rows.append((workload.name, *map(_mib, (ours, prebuilt, ours - prebuilt, *sizes.values()))))
        bars.append(memory_bar(workload.name, ours - prebuilt, **sizes))
        if workload.codec == "zstd" and not workload.is_wide and workload.value_bytes < 1000:
            many = replace(workload, records=workload.records * _TIMES)
            topics.make(many)
            peak = _peak_bytes(place, many, OURS, conf, rounds)
            name = f"{many.name}, {many.records:,} records"
            rows.append((name, _mib(peak), "", "", "", ""))
            bars.append(growth_bar(workload.name, peak - ours))
    return markdown(_HEADER, rows), bars


def _peak_bytes(
    place: Place, workload: Workload, source: str, conf: Mapping[str, str], rounds: int
) -> float:
    """The median over `rounds` fresh applications."""
    return median(_one_peak(place, workload, source, conf) for _ in range(rounds))


def _one_peak(place: Place, workload: Workload, source: str, conf: Mapping[str, str]) -> int:
    folder = place.folder / "memory"
    stock = folder / "no-conf"
    stock.mkdir(parents=True, exist_ok=True)
    with SparkApp(Path(stock), conf, folder) as app:
        app.ask("read", source, spark_options(place, workload, source))
        peaks = app.ask("peaks")["peaks_kib"]
    if not peaks:
        raise RuntimeError("no Python worker of the Spark application was found in /proc")
    return max(peaks) * 1024


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / (1 << 20):,.1f}"
