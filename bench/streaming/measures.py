"""What `bench/stream.py` measures of running queries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from reading.bars import Bar
from reading.tables import markdown

from pyspark_kafkaproto.devbroker import KafkaTools

if TYPE_CHECKING:
    from reading.processes import SparkApp

OURS, RIVAL, FLOOR = "kafkaproto", "kafka", "prebuilt-stream"
NAMES = {OURS: "ours", RIVAL: "Spark's own connector", FLOOR: "floor: one prebuilt batch"}

_CATCH_UP = 2.5
_BATCH = 1.1
_IDLE_PERCENT = 3.0
_GROWTH_BYTES = 10_000_000
_MIB = 1 << 20
_SAMPLE_S = 10
# Batches of each run that are not counted: connections open.
_WARM = 5
# Where a micro-batch's time goes, in Spark's words.
_STEPS = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets", "commitBatch")

Options = Mapping[str, Mapping[str, str]]


def catch_up(app: SparkApp, options: Options, records: int, rounds: int) -> tuple[str, list[Bar]]:
    """All of a topic in one run under Trigger.AvailableNow, rounds interleaved."""
    seconds: dict[str, list[float]] = {source: [] for source in options}
    reading: dict[str, list[float]] = {source: [] for source in options}
    for number in range(rounds + 1):
        for source, own in options.items():
            app.ask("collect_garbage")
            done = app.ask("run", source, own)
            found = sum(each["rows"] for each in done["batches"])
            if found != records:
                raise RuntimeError(f"{source} read {found} records of {records}")
            if number:  # the first round warms up
                seconds[source].append(done["seconds"])
                reading[source].append(
                    sum(each["ms"]["addBatch"] for each in done["batches"]) / 1e3
                )
    rows = [
        (
            NAMES[source],
            f"{records / median(taken):,.0f}",
            f"{median(taken):.2f}",
            f"{median(reading[source]):.2f}",
        )
        for source, taken in seconds.items()
    ]
    ratio = median(seconds[RIVAL]) / median(seconds[OURS])
    header = (f"catch-up of {records:,} records", "records/s", "median s", "of it reading")
    table = markdown(header, rows)
    return table, [Bar("catch-up: ours / Spark's own connector", _CATCH_UP, ratio)]


def micro_batches(app: SparkApp, options: Options, rounds: int) -> tuple[str, list[Bar]]:
    """Many small batches, one after the other, rounds interleaved; medians of each step."""
    taken: dict[str, list[dict[str, int]]] = {source: [] for source in options}
    for number in range(rounds + 1):
        for source, own in options.items():
            app.ask("collect_garbage")
            batches = app.ask("run", source, own)["batches"]
            if number:  # the first round warms up
                taken[source] += [each["ms"] for each in batches[_WARM:]]
    medians = {source: _medians(each) for source, each in taken.items()}
    rows = [
        (
            NAMES[source],
            f"{own['triggerExecution']:.0f}",
            *(f"{own[step]:.0f}" for step in (*_STEPS, "else")),
        )
        for source, own in medians.items()
    ]
    table = markdown(("a micro-batch of 1,000 rows, median ms", "in all", *_STEPS, "else"), rows)
    whole = {source: own["triggerExecution"] for source, own in medians.items()}
    floor = Bar(
        "micro-batch of 1,000 rows: ours / floor", _BATCH, whole[OURS] / whole[FLOOR], is_limit=True
    )
    return table, [floor]


def _medians(batches: Sequence[Mapping[str, int]]) -> dict[str, float]:
    return {
        step: median(each.get(step, 0) for each in batches)
        for step in ("triggerExecution", *_STEPS)
    } | {"else": median(_elsewhere(each) for each in batches)}


def _elsewhere(batch: Mapping[str, int]) -> int:
    """What of a batch Spark accounts to no step: talking to the source, most of it."""
    whole = batch["triggerExecution"]
    return whole - sum(ms for step, ms in batch.items() if step != "triggerExecution")


def idle(app: SparkApp, options: Mapping[str, str], seconds: float) -> tuple[str, list[Bar]]:
    """CPU of all processes with a query that has nothing to read, above that without one."""
    without = _cpu_percent(app, seconds)
    app.ask("begin", OURS, options)
    time.sleep(_SAMPLE_S / 2)  # started, and the JVM quiet again
    within = _cpu_percent(app, seconds)
    app.ask("end")
    rows = [
        (kind, f"{without.get(kind, 0):.1f}", f"{percent:.1f}") for kind, percent in within.items()
    ]
    table = markdown(("CPU while idle, % of a core", "no query", "one idle query"), rows)
    more = sum(within.values()) - sum(without.values())
    return table, [Bar("idle query: CPU", _IDLE_PERCENT, more, "%", is_limit=True)]


def _cpu_percent(app: SparkApp, seconds: float) -> dict[str, float]:
    before = app.ask("processes")["processes"]
    time.sleep(seconds)
    after = app.ask("processes")["processes"]
    return {
        kind: 100 * (own["cpu_s"] - before.get(kind, {"cpu_s": 0.0})["cpu_s"]) / seconds
        for kind, own in after.items()
    }


def soak(
    app: SparkApp, tools: KafkaTools, options: Mapping[str, str], topic: str, minutes: int
) -> tuple[str, list[Bar]]:
    """1,000 records/s; memory and sockets of the second minute against those of the last."""
    app.ask("begin", OURS, options)
    samples = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_write, tools, topic, minutes)
        while not writing.done():
            samples.append(app.ask("processes")["processes"])
            time.sleep(_SAMPLE_S)
        writing.result()
    app.ask("end")
    return _flatness(samples)


def _write(tools: KafkaTools, topic: str, minutes: int) -> None:
    tools.run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(60_000 * minutes), "--throughput", "1000"),
        *("--record-size", "100", "--bootstrap-server", tools.bootstrap_servers),
        timeout_s=120 * minutes,
    )


def _flatness(samples: Sequence[Mapping[str, Any]]) -> tuple[str, list[Bar]]:
    per_minute = 60 // _SAMPLE_S
    early, late = samples[per_minute : 2 * per_minute], samples[-per_minute:]
    rows, bars = [], []
    for kind in ("JVM", "source", "workers"):
        size = [mean(each[kind]["rss_bytes"] for each in part) for part in (early, late)]
        sockets = [median(each[kind]["sockets"] for each in part) for part in (early, late)]
        rows.append((kind, *(f"{each / _MIB:.1f}" for each in size), *map(str, sockets)))
        if kind != "JVM":  # its heap grows as it is allowed to
            grown = (size[1] - size[0]) / _MIB
            needed = _GROWTH_BYTES / _MIB
            bars.append(Bar(f"soak: growth of {kind}", needed, grown, "MiB", is_limit=True))
        more = sockets[1] - sockets[0]
        bars.append(Bar(f"soak: more sockets in {kind}", 0, more, "sockets", is_limit=True))
    header = ("1,000 records/s", "MiB, second minute", "last", "sockets, second minute", "last")
    return markdown(header, rows), bars
