"""A Spark application that runs streaming queries: `python -m streaming.stream_app CONF`.

Spoken to as `reading.spark_app` is: commands and answers are lines of JSON.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reading import spark_app

from streaming.prebuilt_stream import PrebuiltStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_running: list[StreamingQuery] = []


def start(
    spark: SparkSession, source: str, options: dict[str, str], trigger: dict[str, Any]
) -> StreamingQuery:
    frame = spark.readStream.format(source).options(**options).load()
    writer = frame.writeStream.format("noop")
    writer = writer.option("checkpointLocation", tempfile.mkdtemp(dir="."))
    return writer.trigger(**trigger).start()


def run(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, Any]:
    """A query under Trigger.AvailableNow to its end; what each batch took."""
    began = time.perf_counter()
    query = start(spark, source, options, {"availableNow": True})
    query.awaitTermination()
    seconds = time.perf_counter() - began
    batches = [
        {"rows": each["numInputRows"], "ms": each["durationMs"]} for each in query.recentProgress
    ]
    return {"seconds": seconds, "batches": [each for each in batches if each["rows"]]}


def begin(spark: SparkSession, source: str, options: dict[str, str]) -> dict[str, Any]:
    """A query that stays."""
    _running.append(start(spark, source, options, {"processingTime": "0 seconds"}))
    return {}


def end(spark: SparkSession) -> dict[str, Any]:
    """The end of it; how many rows its latest batches had."""
    del spark
    query = _running.pop()
    rows = sum(each["numInputRows"] for each in query.recentProgress)
    error = query.exception()
    query.stop()
    if error is not None:
        raise error
    return {"rows": rows}


def processes(spark: SparkSession) -> dict[str, Any]:
    """CPU seconds, resident bytes and open sockets of this application's processes, by kind."""
    del spark
    found: dict[str, dict[str, float]] = {}
    for pid in [os.getpid(), *spark_app._descendants(os.getpid())]:  # noqa: SLF001 - its own kind
        try:
            kind, figures = _kind(pid), _figures(pid)
        except OSError:
            continue  # it ended meanwhile
        sums = found.setdefault(kind, dict.fromkeys(figures, 0.0) | {"processes": 0})
        for name, value in (figures | {"processes": 1}).items():
            sums[name] += value
    return {"processes": found}


def _kind(pid: int) -> str:
    command = (_PROC / str(pid) / "cmdline").read_text(errors="replace")
    if "python_streaming_source_runner" in command:
        return "source"
    if "pyspark.daemon" in command:
        return "workers"
    return "JVM" if "org.apache.spark" in command else "application"


def _figures(pid: int) -> dict[str, float]:
    own = _PROC / str(pid)
    fields = (own / "stat").read_text(errors="replace").rpartition(")")[2].split()
    sockets = [each for each in (own / "fd").iterdir() if _is_socket(each)]
    return {
        "cpu_s": (int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        "rss_bytes": float(int(fields[21]) * _PAGE_BYTES),
        "sockets": float(len(sockets)),
    }


def _is_socket(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("socket:")
    except OSError:
        return False


def main(conf: str) -> None:
    spark_app.COMMANDS |= {"run": run, "begin": begin, "end": end, "processes": processes}
    spark_app.SOURCES.append(PrebuiltStream)
    try:
        spark_app.main(conf)
    finally:
        for folder in Path().glob("tmp*"):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
