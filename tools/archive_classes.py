"""Archives of the classes that Kafka and Spark load, which halve the start of each of their JVMs.

    python tools/archive_classes.py FOLDER

Writes FOLDER/kafka.jsa and FOLDER/spark.jsa unless they are there and younger than the jars. Java
(13 and later) takes one by `-XX:SharedArchiveFile`, and leaves it aside where the class path or
Java itself are not those it was made with. The suite starts some eighty such JVMs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.devbroker.jars import class_path, resolve_version

# Java tells at length, on standard output, which of thousands of classes it cannot archive.
_QUIET = "-Xlog:cds*=off"
_KAFKA, _SPARK = "kafka.jsa", "spark.jsa"
_SESSION_S = 300

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
    """Make both in `folder`, unless they are there: whole ones, or none."""
    archives = [folder / name for name in (_KAFKA, _SPARK)]
    if all(item.exists() and item.stat().st_mtime > _youngest_jars() for item in archives):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _record(Path(scratch))
        for archive in archives:
            Path(scratch, archive.name).replace(archive)


def _youngest_jars() -> float:
    """When Kafka's jars were fetched or, if that is later, PySpark's, some of which Kafka uses."""
    places = class_path(resolve_version(None)).split(os.pathsep)
    return max(Path(place.removesuffix("*")).stat().st_mtime for place in places)


def _record(folder: Path) -> None:
    """A broker from its start to its end, and meanwhile a session that reads from it."""
    os.environ["KAFKA_HEAP_OPTS"] = f"-Xmx512m {_into(folder / _KAFKA)}"
    own = {"SPARK_SUBMIT_OPTS": _into(folder / _SPARK), "PYSPARK_PYTHON": sys.executable}
    with DevBroker(folder / "broker") as broker:
        command = [sys.executable, "-c", _SESSION, broker.bootstrap_servers]
        subprocess.run(command, env=os.environ | own, check=True, timeout=_SESSION_S)


def _into(archive: Path) -> str:
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"


if __name__ == "__main__":
    # Not at once: the broker, the session and what they have written are to go, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    make(Path(sys.argv[1]).resolve())
