"""How fast do we read, beside everything else that reads Kafka? One run, rounds interleaved.

    python bench/read.py            all workloads, five rounds: about an hour on two cores
    python bench/read.py --quick    small topics, one round: does everything run?
    python bench/read.py --memory   memory of Spark's Python workers instead of speed
    python bench/read.py --ring     what it costs to remember the last frames, without Spark

Needs the extras `spark` and `bench`; a rival that is not installed is named as such. Topics are
written by Kafka's own producer into the dev broker, or into KAFKA_BOOTSTRAP_SERVERS when that is
set. docs/benchmarks.md says what each row means.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any
from zipfile import ZipFile

from reading import memory, ring
from reading.bars import Bar, rate_bars, wide_bars
from reading.measures import (
    CONF,
    RIVAL,
    STOCK,
    Measure,
    NotMeasured,
    Place,
    Run,
    measures_of,
    parts_of_names,
    spark_options,
)
from reading.processes import RunFailed, SparkApp
from reading.rival_jars import connector_jars
from reading.tables import bar_table, rate, workload_table
from reading.workloads import CODECS, Topics, Workload, plan

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.devbroker import DevBroker, KafkaTools, default_data_dir
from pyspark_kafkaproto.devbroker.jars import resolve_version
from pyspark_kafkaproto.errors import DevBrokerFailed
from pyspark_kafkaproto.records import IMPLEMENTATION

ROOT = Path(__file__).resolve().parent.parent
FULL_RECORDS = 4_000_000
QUICK_RECORDS = 100_000

# The same in every application; all else is Spark's default, or conf/'s.
SPARK_CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}

# workload -> measure -> its runs, or why there are none
Results = dict[Workload, dict[str, list[Run] | str]]


def main() -> int:
    options = parse()
    # A polite end (SIGTERM) takes the way of Ctrl-C: everything that was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n", flush=True)
    workloads = list(plan(options.records, options.codecs, options.partitions, options.sizes))
    try:
        results, bars = run(options, workloads)
    except KeyboardInterrupt:
        print("interrupted: everything that was started has ended", file=sys.stderr)
        return 130
    except (RunFailed, DevBrokerFailed) as error:
        print(error, file=sys.stderr)
        return 1
    print(bar_table(bars))
    if options.records < FULL_RECORDS:
        print("\nSmall topics: fixed costs weigh more, and the bars are set for 4 million records.")
    if options.json:
        options.json.write_text(json.dumps(as_json(options, facts, results, bars), indent=1))
    return 0


def run(options: argparse.Namespace, workloads: Sequence[Workload]) -> tuple[Results, list[Bar]]:
    """Everything between the start of the broker and its end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-read-")))
        tools = stack.enter_context(broker(keep=options.keep_topics))
        properties = {"bootstrap.servers": tools.bootstrap_servers}
        cluster = stack.enter_context(KafkaCluster(properties))
        topics = stack.enter_context(Topics(tools, cluster, keep=options.keep_topics))
        place = Place(tools, folder, dict(options.property))
        if options.memory:
            narrow = [workload for workload in workloads if not workload.is_wide]
            table, bars = memory.measure(place, topics, narrow, SPARK_CONF, options.rounds)
            print(table, end="\n\n", flush=True)
            return {}, bars
        if options.ring:
            table, bars = ring.measure(place, topics, workloads, options.rounds)
            print(table, end="\n\n", flush=True)
            return {}, bars
        chosen = {
            workload: list(measures_of(workload, options.only, slow_rival=options.slow_rival))
            for workload in workloads
        }
        place = replace(place, apps=start_apps(stack, folder, chosen))
        return measure_all(place, topics, chosen, options.rounds)


@contextmanager
def broker(*, keep: bool) -> Iterator[KafkaTools]:
    """The broker that KAFKA_BOOTSTRAP_SERVERS names, else one of our own."""
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if servers:
        yield KafkaTools(servers)
        return
    with DevBroker(default_data_dir().with_name("bench") if keep else None) as started:
        yield started


def start_apps(
    stack: ExitStack, folder: Path, chosen: Mapping[Workload, Sequence[Measure]]
) -> dict[str, SparkApp]:
    """The Spark applications that the chosen measures need: settings are fixed at their start."""
    conf_dirs = {STOCK: folder / "no-conf", CONF: ROOT / "conf"}
    conf_dirs[STOCK].mkdir()
    if not (conf_dirs[CONF] / "spark-defaults.conf").is_file():
        raise SystemExit(f"{conf_dirs[CONF]} has no spark-defaults.conf: is this a checkout?")
    measures = [measure for each in chosen.values() for measure in each]
    conf = dict(SPARK_CONF)
    if any(measure.source == RIVAL for measure in measures):
        conf["spark.jars"] = ",".join(connector_jars())
    return {
        name: stack.enter_context(
            SparkApp(conf_dirs[name], conf if name == CONF else SPARK_CONF, folder / name)
        )
        for name in (STOCK, CONF)
        if any(measure.app == name for measure in measures)
    }


def measure_all(
    place: Place, topics: Topics, chosen: Mapping[Workload, Sequence[Measure]], rounds: int
) -> tuple[Results, list[Bar]]:
    """Workload after workload; the tables are printed as they come."""
    results: Results = {}
    for workload, measures in chosen.items():
        progress(f"{workload.name}: writing {workload.records:,} records")
        topics.make(workload)
        if not workload.is_wide and place.apps:
            place.write_shape(workload)
        check_counts(place, workload, measures)
        results[workload] = measure_rounds(place, workload, measures, rounds)
        print(workload_table(workload, results[workload]), end="\n\n", flush=True)
    return results, list(all_bars(results))


def measure_rounds(
    place: Place, workload: Workload, measures: Sequence[Measure], rounds: int
) -> dict[str, list[Run] | str]:
    """Rounds of one run of each measure; a first round, not kept, warms everything up."""
    runs: dict[str, list[Run]] = {measure.name: [] for measure in measures}
    reasons: dict[str, str] = {}
    for number in range(rounds + 1):
        for measure in measures:
            if measure.name in reasons:
                continue
            progress(f"{workload.name}: round {number} of {rounds}: {measure.name}")
            try:
                done = measure.run(place, workload)
            except (NotMeasured, RunFailed, DevBrokerFailed) as error:
                if measure.ours:
                    raise
                # A rival that fails once is not asked again; its reason takes the figure's place.
                reasons[measure.name] = str(error).strip().splitlines()[-1][:80]
                continue
            if number:
                runs[measure.name].append(done)
    progress("")
    return {name: reasons.get(name, kept) for name, kept in runs.items()}


def check_counts(place: Place, workload: Workload, measures: Sequence[Measure]) -> None:
    """Every source in Spark gives all rows: a fast reading of too few would be worth nothing."""
    for measure in measures:
        if measure.app is None or measure.source is None:
            continue
        if workload.is_wide and measure.source == RIVAL:
            continue  # minutes; its rows are compared with ours in the tests
        progress(f"{workload.name}: counting what {measure.name} gives")
        source = spark_options(place, workload, measure.source)
        found = place.apps[measure.app].ask("count", measure.source, source)["records"]
        if found != workload.records:
            raise SystemExit(
                f"{measure.name}: {found} rows of {workload.records} ({workload.name})"
            )


def all_bars(results: Results) -> Iterator[Bar]:
    """The bars that these results say something about."""
    kept = {
        (workload.name, name): rate(runs)
        for workload, measured in results.items()
        for name, runs in measured.items()
        if not isinstance(runs, str)
    }
    yield from rate_bars(kept)
    for workload, measured in results.items():
        if workload.is_wide:
            seconds = {
                name: median(run.seconds for run in runs)
                for name, runs in measured.items()
                if not isinstance(runs, str)
            }
            yield from wide_bars(workload.name, seconds)


def progress(text: str) -> None:
    """What is being done: in one place on a terminal, line by line elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def machine_facts() -> dict[str, str]:
    """What the figures depend on, in general terms."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    packages = ("pyspark", "pyarrow", "confluent-kafka", "aiokafka", "kafka-python")
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "GiB": f"{memory_gib:.0f}",
        "system": platform.system(),
        "Python": platform.python_version(),
        "decoder": IMPLEMENTATION,
        "Kafka": resolve_version(None),
        **{name: _installed(name) for name in packages},
        "pyspark.zip": "compiled" if _is_archive_compiled() else "sources alone",
    }


def _is_archive_compiled() -> bool:
    """Whether Python processes of Spark need not compile PySpark (tools/compile_spark_zip.py)."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return False
    archive = Path(found.origin).parent / "python" / "lib" / "pyspark.zip"
    if not archive.is_file():
        return False
    with ZipFile(archive) as file:
        return "pyspark/__init__.pyc" in file.namelist()


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def as_json(
    options: argparse.Namespace, facts: Mapping[str, str], results: Results, bars: Sequence[Bar]
) -> dict[str, Any]:
    """All that was measured, every round of it."""
    return {
        "machine": dict(facts),
        "rounds": options.rounds,
        "properties": dict(options.property),
        "workloads": [
            asdict(workload)
            | {
                "name": workload.name,
                "measures": {
                    name: runs if isinstance(runs, str) else [asdict(run) for run in runs]
                    for name, runs in measured.items()
                },
            }
            for workload, measured in results.items()
        ],
        "bars": [asdict(bar) | {"verdict": bar.verdict} for bar in bars],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--records", type=int, help="of 100 B (default 4,000,000); of 10 kB a fortieth of that")
    add("--partitions", type=int, help="of the workload that has many (default 1,000)")
    add("--codecs", type=names(CODECS), default=CODECS, help=f"some of {','.join(CODECS)}")
    add("--sizes", type=names(SIZES), default=SIZES, help=f"some of {','.join(SIZES)}")
    add("--only", type=parts_of_names, default=(), help="rows whose names hold these")
    add("--rounds", type=int, help="kept rounds (default 5); one more warms up")
    add("--slow-rival", action="store_true", help="Spark's own on many partitions: minutes a round")
    add("--memory", action="store_true", help="memory of Python workers instead of speed")
    add("--ring", action="store_true", help="cost of remembering the last frames instead of speed")
    add("--keep-topics", action="store_true", help="the next run finds them (and the dev broker)")
    add("--property", type=name_and_value, action="append", default=[], help=_PROPERTY_HELP)
    add("--quick", action="store_true", help="small topics, one round, two codecs")
    add("--json", type=Path, help="write everything that was measured to this file")
    options = parser.parse_args()
    if options.quick and options.codecs is CODECS:
        options.codecs = ("none", "zstd")
    options.records = options.records or (QUICK_RECORDS if options.quick else FULL_RECORDS)
    options.partitions = options.partitions or (100 if options.quick else 1000)
    options.rounds = options.rounds or (1 if options.quick else 5)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
    return options


SIZES = ("small", "large", "wide")
_PROPERTY_HELP = "NAME=VALUE: a Kafka client property for ours; may be given several times"


def name_and_value(text: str) -> tuple[str, str]:
    """`max.partition.fetch.bytes=1048576`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def names(allowed: Sequence[str]) -> Any:
    """A list of names separated by commas, each of them one of `allowed`."""

    def read(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if not set(chosen) <= set(allowed):
            raise argparse.ArgumentTypeError(f"expected some of {','.join(allowed)}")
        return chosen

    return read


if __name__ == "__main__":
    sys.exit(main())
