"""One Spark application that reads what it is told to: `python -m reading.spark_app CONF`.

CONF is JSON, the settings of the session. Commands come as lines of JSON on standard input, each is
answered by one line on standard output; the application ends with its input. What Spark prints goes
to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, monotonically_increasing_id

from reading.dropping import Dropping
from reading.prebuilt import Prebuilt

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

_PROC = Path("/proc")
SOURCES: list[type[DataSource]] = [Prebuilt, Dropping]


def load(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    return spark.read.format(source).options(**options).load()


def read(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, float]:
    """All of it into the sink that throws rows away, from the options to the last row."""
    began = time.perf_counter()
    load(spark, source, options).write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - began}


def count(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, int]:
    """How many rows there are."""
    return {"records": load(spark, source, options).count()}


def plan(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, float]:
    """From the options to the input partitions, nothing read."""
    began = time.perf_counter()
    execution = load(spark, source, options)._jdf.queryExecution()  # noqa: SLF001 - no other way
    partitions = execution.toRdd().getNumPartitions()
    return {"seconds": time.perf_counter() - began, "partitions": partitions}


def write(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, float]:
    """All rows of a folder into `source` (`noop`: nowhere), from the options to the last answer."""
    rows = spark.read.parquet(options.pop("rows"))
    mode = "overwrite" if source == "noop" else "append"
    began = time.perf_counter()
    rows.write.format(source).options(**options).mode(mode).save()
    return {"seconds": time.perf_counter() - began}


def make_rows(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, int]:
    """Rows to write, as many as asked, made of the lines of a text file; `source` is where to."""
    lines = spark.read.text(options["lines"]).coalesce(1)
    lines = lines.withColumn("line", monotonically_increasing_id())
    # All lines in their order, again and again: equal ones side by side would compress to nothing.
    numbers = spark.range(0, int(options["records"]), 1, int(options["tasks"]))
    many = numbers.join(broadcast(lines), numbers["id"] % lines.count() == lines["line"])
    many.select("value").write.option("compression", "none").parquet(source)
    return {"records": spark.read.parquet(source).count()}


def collect_garbage(spark: SparkSession) -> dict[str, int]:
    """So that nobody pays for what another left."""
    spark.sparkContext._jvm.System.gc()  # noqa: SLF001 - no other way
    return {}


def peaks(spark: SparkSession) -> dict[str, list[int]]:
    """The peak resident memory, in KiB, of each Python worker that runs tasks."""
    del spark
    return {"peaks_kib": [_peak_kib(pid) for pid in _descendants(os.getpid()) if _is_worker(pid)]}


def _descendants(pid: int) -> list[int]:
    """Every process below `pid`, by the parent that proc(5) names."""
    parents = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(stat.parent.name)] = int(fields[1])
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found[1:]


def _is_worker(pid: int) -> bool:
    """Whether it is a task's worker: `pyspark.daemon pyspark.worker` whose parent is the same."""
    own, parent = _command(pid), _command(_parent(pid))
    return own == parent and own[-2:] == ["pyspark.daemon", "pyspark.worker"]


def _command(pid: int) -> list[str]:
    return (_PROC / str(pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")


def _parent(pid: int) -> int:
    return int(
        (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    )


def _peak_kib(pid: int) -> int:
    status = (_PROC / str(pid) / "status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


COMMANDS = {
    "read": read,
    "count": count,
    "plan": plan,
    "write": write,
    "make_rows": make_rows,
    "collect_garbage": collect_garbage,
    "peaks": peaks,
}


def answer(spark: SparkSession, command: dict[str, Any]) -> dict[str, Any]:
    """Run one command; a failure is an answer too."""
    do = COMMANDS[command.pop("do")]
    try:
        return do(spark, **command)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to whoever asked
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def main(conf: str) -> None:
    # The JVM inherits standard output and may print to it: answers keep the real one to themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    builder = SparkSession.builder.appName("bench-read")
    for name, value in json.loads(conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for source in SOURCES:
        spark.dataSource.register(source)
    answers.write(json.dumps({"version": spark.version}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(answer(spark, json.loads(line))) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
