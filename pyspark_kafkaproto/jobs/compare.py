"""Reads a topic with this source and with Spark's own connector: the same rows? How fast?

    kafkaproto compare -b broker-1:9092 orders
    spark-submit …/pyspark_kafkaproto/jobs/compare.py --no-fetch --option subscribe=orders …

The exit code is 0 when every partition has the same rows, 3 when not, else as for any command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.silence import waiting_aloud
from pyspark_kafkaproto.devbroker.connector import connector_jars
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.exit_codes import NOT_WELL, exit_code_of
from pyspark_kafkaproto.spark.comparing import SOURCES, Comparison, Side, compare
from pyspark_kafkaproto.spark.options import lowered, parse_read_options
from pyspark_kafkaproto.spark.planning import plan_closed_ranges
from pyspark_kafkaproto.spark.range_text import ranges_json
from pyspark_kafkaproto.wire.printable import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison once; the exit code."""
    given = _parse(arguments)
    try:
        options = read_options(given)
        ranges = find_ranges(options)  # Spark takes seconds to start: refuse before
        _say("starting Spark")
        spark = _session(given)
        _say("warming up: a few rows with each source")
        warm_up(spark, options, ranges)
        result = compare(spark, options, runs=given.runs, tell=_say)
    except KafkaProtoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return exit_code_of(error)
    print(json.dumps(as_json(result)) if given.json else as_text(result))
    return 0 if result.is_same else NOT_WELL


def _say(text: str) -> None:
    """It takes half a minute, on nothing but a few rows, too."""
    print(text, file=sys.stderr, flush=True)


def find_ranges(options: Mapping[str, str]) -> list[OffsetRange]:
    """What `options` mean at this moment, without what is empty.

    Raises:
        KafkaProtoError: wrong options, no such topic, nobody who answers.
    """
    read = parse_read_options(lowered(options))
    with KafkaCluster(read.driver) as cluster, waiting_aloud(lambda: cluster.waits_for, _say):
        return [item for item in plan_closed_ranges(cluster, read) if item.count]


def warm_up(spark: SparkSession, options: Mapping[str, str], ranges: Sequence[OffsetRange]) -> None:
    """Read a few rows with both sources: Spark's start is not for whoever reads first to pay."""
    if ranges:
        compare(spark, first_rows(options, ranges[: spark.sparkContext.defaultParallelism]))


def first_rows(options: Mapping[str, str], ranges: Sequence[OffsetRange]) -> dict[str, str]:
    """Options for the first row in each of `ranges`, of the cluster that `options` name."""
    rows = [replace(item, stop=(item.start or 0) + 1) for item in ranges]
    low = lowered(options)
    client = {name: text for name, text in low.items() if name.startswith("kafka.")}
    # What is lost meanwhile is for the comparison to tell.
    return client | {"offsetRanges": ranges_json(rows), "failOnDataLoss": "false"}


def as_text(result: Comparison) -> str:
    """The result for people: a line per source, then what differs."""
    lines = ["source      rows          seconds  rows/s"]
    lines += [
        f"{side.source:10}  {side.rows:<12}  {side.seconds:<7.2f}  {side.rows_per_s:.0f}"
        for side in (result.ours, result.theirs)
    ]
    if result.is_same:
        where = counted(len(result.ranges), "partition")
        return "\n".join([*lines, f"the same rows in {where}"])
    for item in result.differing:
        lines.append(f"{item} differs:")
        lines += [
            f"  {source:10}  {digest or 'no rows'}"
            for source in SOURCES
            for digest in result.found(source, item)
        ]
    return "\n".join(lines)


def as_json(result: Comparison) -> dict[str, object]:
    """The result for programs."""

    def shown(side: Side) -> dict[str, object]:
        return {"rows": side.rows, "seconds": side.seconds, "rows_per_s": side.rows_per_s}

    return {
        "same": result.is_same,
        "ranges": [[*item.topic_partition, item.start, item.stop] for item in result.ranges],
        "differing": [list(item) for item in result.differing],
        **{side.source: shown(side) for side in (result.ours, result.theirs)},
    }


def read_options(given: argparse.Namespace) -> dict[str, str]:
    """The reader's options: those of `--options`, then each `--option`, then the servers.

    Raises:
        ConfigError: an argument that is not KEY=VALUE, or a file that is not there, or not JSON.
    """
    options: dict[str, str] = {}
    if given.options is not None:
        options |= _loaded(sys.stdin.read() if given.options == "-" else _text(given.options))
    options |= dict(map(_pair, given.option))
    if given.bootstrap_servers:
        options["kafka.bootstrap.servers"] = given.bootstrap_servers
    return options


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "no UTF-8" if isinstance(error, ValueError) else error.strerror
        raise ConfigError("--options", path, f"expected a file of JSON: {why}") from error


def _loaded(text: str) -> dict[str, str]:
    try:
        loaded = json.loads(text)
    except ValueError:
        loaded = None
    if not isinstance(loaded, dict):
        # What it holds may be a secret: it is not shown.
        raise ConfigError("--options", "…", 'expected JSON: {"subscribe": "orders"}')
    return {str(name): str(value) for name, value in loaded.items()}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError("--option", "…", "expected KEY=VALUE")
    return key.strip(), value


def _session(given: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder.appName("kafkaproto compare")
    if not given.no_fetch:
        builder = builder.config("spark.jars", ",".join(connector_jars()))
    if given.master:
        builder = builder.master(given.master)
    return builder.config("spark.log.level", "ERROR").getOrCreate()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare with Spark's own connector.")
    parser.add_argument("--bootstrap-servers")
    parser.add_argument("--options", metavar="FILE", help="of spark.read, as JSON; - for stdin")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--runs", type=_count, default=1, help="of each; the fastest is shown")
    parser.add_argument("--master", help="Spark's; default: as spark-submit says, or local[*]")
    parser.add_argument(
        "--no-fetch", action="store_true", help="Spark's own connector is on the class path"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
