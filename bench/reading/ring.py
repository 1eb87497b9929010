"""What it costs a reader to remember the last frames of its connections, in case of an error.

`python -m reading.ring JOB` reads a topic in one process, again and again, with `capture.errors`
and without in turn, and prints one line of JSON: the seconds of both, pair by pair. Which of a pair
comes first changes, so that neither always finds the machine as the other has left it.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median

from reading.bars import Bar, ring_bar
from reading.measures import CLIENT_TIMEOUT_S, Place
from reading.ours import Reading
from reading.processes import RunFailed, python_module, run
from reading.tables import markdown
from reading.workloads import Topics, Workload

# A pair is short, and single ones scatter by more than what is looked for.
PAIRS_OF_A_ROUND = 10
_HEADER = ("median ms of a reading", "remembering", "not", "cost by pairs, %", "pairs")

# (remembering, not), in seconds
Pair = tuple[float, float]


def measure(
    place: Place, topics: Topics, workloads: Sequence[Workload], rounds: int
) -> tuple[str, list[Bar]]:
    """All workloads, the one with many partitions too: it has the most frames for its bytes.

    Returns:
        The table and the bars.
    """
    rows, bars = [], []
    for workload in workloads:
        topics.make(workload)
        pairs = _in_a_process(place, workload, rounds * PAIRS_OF_A_ROUND)
        rows.append(row(workload.name, pairs))
        bars.append(ring_bar(workload.name, cost(pairs)))
    return markdown(_HEADER, rows), bars


def row(name: str, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """One workload's figures."""
    medians = [f"{1000 * median(times):,.1f}" for times in zip(*pairs, strict=True)]
    return (name, *medians, f"{100 * cost(pairs):+.2f}", str(len(pairs)))


def cost(pairs: Sequence[Pair]) -> float:
    """How much longer a reading that remembers takes: 0.02 is 2 %, the median of the pairs."""
    return median(remembering / without for remembering, without in pairs) - 1


def _in_a_process(place: Place, workload: Workload, count: int) -> list[Pair]:
    job = {
        "properties": place.properties,
        "topic": workload.topic,
        "records": workload.records,
        "pairs": count,
    }
    command = python_module("reading.ring", json.dumps(job))
    done = run(command, cwd=place.folder, timeout_s=CLIENT_TIMEOUT_S)
    return [(pair[0], pair[1]) for pair in json.loads(done.stdout.splitlines()[-1])]


def read_pairs(properties: Mapping[str, str], topic: str, records: int, pairs: int) -> list[Pair]:
    """The readings, in this process; a first pair, not kept, warms it up."""
    found: list[Pair] = []
    for number in range(pairs + 1):
        seconds: dict[bool, float] = {}
        for remembers in (True, False) if number % 2 else (False, True):
            own = {**properties, "capture.errors": str(remembers).lower()}
            seconds[remembers] = _seconds(own, topic, records)
        if number:
            found.append((seconds[True], seconds[False]))
    return found


def _seconds(properties: Mapping[str, str], topic: str, records: int) -> float:
    """One reading as `reading.clients` has it: asking for partitions and offsets included."""
    gc.collect()
    began = time.perf_counter()
    with Reading.open(properties, topic) as reading:
        count = reading.count()
    seconds = time.perf_counter() - began
    if count != records:
        raise RunFailed(f"read {count} records of {records} ({topic})")
    return seconds


if __name__ == "__main__":
    print(json.dumps(read_pairs(**json.loads(sys.argv[1]))))
