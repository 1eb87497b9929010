"""A Spark job that writes exactly once while Spark speculates: one task's first attempt is slow.

    python speculation_app.py MASTER SERVERS FOLDER TASKS ROWS batch|stream=TOPIC ...

Each attempt of a task makes the file `FOLDER/KIND/TASK-ATTEMPT-WORKER`. Attempt 0 of task 0 stops
after half of its rows, until Spark kills it: it never comes first. Its copy begins once some of
those are written.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.net import ClientConfig, connections_for

_BATCHES = 8  # of a task: one goes to the writer when the next one has begun to come
_PAUSE_S = 0.02
_ALL = "read_uncommitted"
_SLOWEST_S = 240.0


def session(master: str) -> SparkSession:
    return (
        SparkSession.builder.master(master)
        .config("spark.executor.memory", "512m")
        # Between workers rows wait in buffers of this size: less than what comes before the stop.
        .config("spark.buffer.size", "1024")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.5")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def main(master: str, servers: str, folder: Path, tasks: int, rows: int, *jobs: str) -> None:
    spark = session(master)
    for job in jobs:
        kind, _, topic = job.partition("=")
        write(spark, servers, topic, folder / kind, kind, tasks, rows)
        print("written", kind, flush=True)
    spark.stop()


def seen(servers: str, topic: str, isolation: str) -> Counter[int]:
    """How often a reader sees each row."""
    config = ClientConfig.parse({"bootstrap.servers": servers, "isolation.level": isolation})
    with KafkaCluster({"bootstrap.servers": servers}) as cluster:
        partitions = sorted(cluster.get_partitions({topic}))
    task = ReadTask(tuple(OffsetRange(*item, 0, None) for item in partitions))
    found: Counter[int] = Counter()
    for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
        found.update(int(value) for value in batch.column(0).to_pylist())
    connections_for(config).close()
    return found


def write(
    spark: SparkSession, servers: str, topic: str, folder: Path, kind: str, tasks: int, rows: int
) -> None:
    folder.mkdir()

    def slow_at_first(batches):
        context = TaskContext.get()
        task, attempt = context.partitionId(), context.attemptNumber()
        # An executor works in WORKER'S FOLDER/APPLICATION/EXECUTOR.
        (folder / f"{task}-{attempt}-{Path.cwd().parents[1].name}").touch()
        is_slow, is_copy = task == attempt == 0, task == 0 < attempt
        for number, batch in enumerate(batches):
            deadline = time.monotonic() + _SLOWEST_S
            own = set(batch.column(0).to_pylist()) if is_copy and number == 0 else set()
            while own and not own & seen(servers, topic, _ALL).keys():
                assert time.monotonic() < deadline, "nothing of the slow attempt was written"
                time.sleep(_PAUSE_S)
            while is_slow and number == _BATCHES // 2:
                assert time.monotonic() < deadline, "no speculative copy has come first"
                time.sleep(_PAUSE_S)
            yield pa.RecordBatch.from_arrays([batch.column(0).cast(pa.string())], names=["value"])

    options = {
        "kafka.bootstrap.servers": servers,
        "kafka.batch.size": "1000",
        "kafka.linger.ms": "0",
        "topic": topic,
        "transactionalIdPrefix": topic,
        "decisionTopic": f"{topic}-decisions",
    }
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows // tasks // _BATCHES)
    if kind == "batch":
        frame = spark.range(0, rows, 1, tasks).mapInArrow(slow_at_first, "value string")
        frame.write.format("kafkaproto").options(**options).mode("append").save()
    else:
        frame = spark.readStream.format("rate-micro-batch")
        frame = frame.option("rowsPerBatch", rows).option("numPartitions", tasks).load()
        frame = frame.select("value").mapInArrow(slow_at_first, "value string")
        writer = frame.writeStream.format("kafkaproto").options(**options)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(300)


if __name__ == "__main__":
    main(*sys.argv[1:3], Path(sys.argv[3]), *map(int, sys.argv[4:6]), *sys.argv[6:])
