"""Archives of the classes that Kafka and Spark load, which halve the start of each of their JVMs.

    python tools/archive_classes.py FOLDER

Writes FOLDER/kafka.jsa and FOLDER/spark.jsa unless they are there and younger than the jars. Java
(13 and later) takes one by `-XX:SharedArchiveFile`, and leaves it aside where the class path or
Java itself are not those it was made with. The suite starts some eighty such JVMs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.devbroker.jars import class_path, resolve_version

# Java tells at length, on standard output, which of thousands of classes it cannot archive.
_QUIET = "-Xlog:cds*=off"
_HEAP = "-Xmx512m"

_SESSION = """
import sys
from pyspark.sql import SparkSession
from pyspark_kafkaproto.cluster import NewTopic, Router
from pyspark_kafkaproto.cluster.topics import create_topics
from pyspark_kafkaproto.net import ClientConfig

servers = sys.argv[1]
router = Router(ClientConfig.parse({"bootstrap.servers": servers}))
create_topics(router, [NewTopic("any", 1, 1)])
router.close()
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
with builder.getOrCreate() as spark:
    options = {"kafka.bootstrap.servers": servers, "subscribe": "any"}
    rows = spark.read.format("kafkaproto").options(**options).load()
    rows.groupBy("partition").count().collect()
    java = spark.sparkContext._gateway.proc
java.stdin.close()
java.wait()  # it writes the archive when all else has ended
"""


def make(folder: Path) -> None:
    """Make what is missing in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _made(folder / "kafka.jsa", lambda target: _run_broker(Path(scratch), target))


def _made(archive: Path, run: Callable[[Path], None]) -> None:
    """A whole archive or none: one that is cut short would be tried, and refused, by every JVM."""
    if archive.exists() and archive.stat().st_mtime > _youngest_jars():
        return
    unfinished = archive.with_suffix(".part")
    run(unfinished)
    unfinished.replace(archive)


def _youngest_jars() -> float:
    """When Kafka's jars were fetched or, if that is later, PySpark's, some of which Kafka uses."""
    places = class_path(resolve_version(None)).split(os.pathsep)
    return max(Path(place.removesuffix("*")).stat().st_mtime for place in places)


def _run_broker(scratch: Path, archive: Path) -> None:
    """A broker from its start to its end, and meanwhile a session that reads from it."""
    os.environ["KAFKA_HEAP_OPTS"] = f"{_HEAP} -XX:ArchiveClassesAtExit={archive} {_QUIET}"
    with DevBroker(scratch) as broker:
        servers = broker.bootstrap_servers
        _made(archive.with_name("spark.jsa"), lambda target: _run_session(servers, target))


def _run_session(servers: str, archive: Path) -> None:
    options = f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"
    subprocess.run(
        [sys.executable, "-c", _SESSION, servers],
        env=os.environ | {"SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable},
        check=True,
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
