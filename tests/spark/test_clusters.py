"""Where it runs: a cluster of separate processes with the package shipped, the oldest Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

import pyspark_kafkaproto
from pyspark_kafkaproto.records import NewRecord
from tests.spark.writing import produce

pytestmark = pytest.mark.spark

OLDEST = "4.0.1"
PACKAGE = Path(pyspark_kafkaproto.__file__).parent
START_S = 60.0

READER = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

servers, topic = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
frame = (
    spark.read.format("kafkaproto")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", topic)
    .option("includeHeaders", "true")
    .load()
)
rows = frame.orderBy("partition", "offset").collect()

def where(rows):
    import os
    import pyspark_kafkaproto
    from pyspark_kafkaproto.records import IMPLEMENTATION
    yield os.getppid(), os.path.realpath(pyspark_kafkaproto.__file__), IMPLEMENTATION

# Long enough that one executor does not take all tasks before the other has come.
import time
def busy(rows):
    time.sleep(1)
    return where(rows)

found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(busy).collect()
print("RESULT " + json.dumps({
    "version": spark.version,
    "rows": [[row.partition, row.offset, bytes(row.value).decode()] for row in rows],
    "where": sorted(set(map(tuple, found))),
}))
spark.stop()
"""

# What differs from one version of Spark to the next: an empty plan, writers, streams, and what is
# refused.
OLDER = """
import json, sys
from pyspark.sql import SparkSession

servers, topic = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
kafka = {"kafka.bootstrap.servers": servers}

def read(**options):
    return spark.read.format("kafkaproto").options(**kafka, **options).load()

def write(prefix):
    rows = spark.range(prefix * 10, prefix * 10 + 10).selectExpr("CAST(id AS STRING) AS value")
    writer = rows.write.format("kafkaproto").options(**kafka, topic=topic).mode("append")
    (writer.option("transactionalIdPrefix", topic) if prefix else writer).save()

def run(stream, checkpoint):
    stream.option("checkpointLocation", checkpoint).start().awaitTermination(60)

def refusal(stream, checkpoint):
    try:
        run(stream, checkpoint)
    except Exception as error:
        return str(error)

def events(**options):
    source = spark.readStream.format("kafkaproto").options(**kafka, subscribe=topic, **options)
    return source.load().writeStream

def streamed():
    # What is in the folder of the stream's rows after one more run.
    stream = events(startingOffsets="earliest").format("parquet").option("path", "rows")
    run(stream.trigger(availableNow=True), "checkpoint")
    return sorted(int(row.value) for row in spark.read.parquet("rows").collect())

write(0)
first = streamed()
write(1)
nothing = read(subscribePattern="^no-such-topic$").count()
written = sorted(int(row.value) for row in read(subscribe=topic).collect())
ticks = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
out = ticks.writeStream.format("kafkaproto").options(**kafka, topic=topic)
limited = events(maxOffsetsPerTrigger=5).format("noop")
print("RESULT " + json.dumps({
    "version": spark.version,
    "nothing": nothing,
    "written": written,
    "streamed": [first, streamed()],
    "refusals": [refusal(out, "out"), refusal(limited, "in")],
}))
spark.stop()
"""


@pytest.fixture(scope="module")
def topic(broker, new_topic):
    name = new_topic(partitions=4)
    for partition in range(4):
        records = [NewRecord(b"%d" % at, b"k", 1) for at in range(50)]
        produce(broker.bootstrap_servers, name, partition, records)
    return name


EXPECTED = [[partition, at, str(at)] for partition in range(4) for at in range(50)]


def run_reader(servers, topic, folder, environment, *conf, text=READER):
    """What READER, or `text`, prints, run by spark-submit's Python with these settings."""
    script = folder / "reader.py"
    script.write_text(text)
    settings = [
        *("spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1"),
        *("spark.driver.host=127.0.0.1", "spark.log.level=ERROR", *conf),
    ]
    words = " ".join(f"--conf {item}" for item in settings)
    done = subprocess.run(
        [sys.executable, str(script), servers, topic],
        env=environment | {"PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


@contextmanager
def spark_process(log, pattern, *arguments):
    """A process of Spark's deployment; gives a wait for what `pattern` finds in its log."""
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(script), *arguments],
            env=environment | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + START_S

    def wait():
        while not (found := re.search(pattern, log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        return found[0]

    try:
        yield wait
    finally:
        process.terminate()
        process.wait(30)


def test_a_standalone_cluster_reads_with_the_package_shipped_as_an_archive(broker, topic, tmp_path):
    archive = tmp_path / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(PACKAGE, PACKAGE.name)
    quiet = ("--host", "127.0.0.1", "--webui-port", "0")
    master_class, worker_class = (
        f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker")
    )
    size = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
    with ExitStack() as stack:
        start = stack.enter_context
        find_master = start(
            spark_process(
                tmp_path / "master.log",
                r"spark://127\.0\.0\.1:[1-9][0-9]*",
                *(master_class, "--port", "0", *quiet),
            )
        )
        worker = (worker_class, *quiet, *size, master := find_master())
        logs = (tmp_path / "one.log", tmp_path / "two.log")
        for wait in [start(spark_process(log, "registered with master", *worker)) for log in logs]:
            wait()
        result = run_reader(
            broker.bootstrap_servers,
            topic,
            tmp_path,
            os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(PACKAGE.parent)},
            f"spark.master={master}",
            "spark.executor.memory=512m",
            f"spark.archives={archive}#environment",
            "spark.executorEnv.PYTHONPATH=environment",
            # Both executors are there before the first task is given out.
            "spark.scheduler.minRegisteredResourcesRatio=1.0",
            "spark.cores.max=2",
        )
    assert result["rows"] == EXPECTED
    places = result["where"]
    assert len({process for process, _, _ in places}) == 2
    assert all(str(tmp_path / "work") in file for _, file, _ in places), places


@pytest.mark.long
def test_the_oldest_spark_reads_and_writes_batches_and_reads_streams(
    broker, topic, new_topic, tmp_path
):
    libraries = tmp_path / "libraries"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(libraries)),
            f"pyspark=={OLDEST}",
        ],
        check=True,
        timeout=280,
    )
    path = os.pathsep.join([str(libraries), str(PACKAGE.parent)])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    environment.pop("SPARK_HOME", None)
    result = run_reader(
        broker.bootstrap_servers, topic, tmp_path, environment, "spark.master=local[2]"
    )
    assert result["version"] == OLDEST
    assert result["rows"] == EXPECTED
    older = run_reader(
        *(broker.bootstrap_servers, new_topic(), tmp_path, environment, "spark.master=local[2]"),
        text=OLDER,
    )
    assert (older["nothing"], older["written"]) == (0, list(range(20)))
    assert older["streamed"] == [list(range(10)), list(range(20))]
    writing, limiting = older["refusals"]
    assert f"writing streams needs PySpark 4.1 or later, this is {OLDEST}" in writing
    assert f"limits need PySpark 4.2 or later; this is {OLDEST}" in limiting
