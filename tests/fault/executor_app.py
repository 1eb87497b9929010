"""A Spark job with executors of their own that writes slowly enough to be killed in its middle.

`python executor_app.py SERVERS TOPIC TASKS ROWS GATE`: each row's value says which task and attempt
it is of, the process id of their executor, and its place among the rows of that attempt. An attempt
comes to its second half when the file GATE is there.
"""

import os
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

_ROWS_PER_BATCH = 500
_PACE_S = 0.05  # per batch: a source that is not instant


def main(servers: str, topic: str, tasks: int, rows: int, gate: Path) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,700]")
        .config("spark.executor.memory", "512m")
        .config("spark.task.maxFailures", "20")
        .config("spark.excludeOnFailure.enabled", "false")
        .config("spark.deploy.maxExecutorRetries", "-1")
        # Rows are on their way soon after they are made, in small pieces.
        .config("spark.buffer.size", "1024")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ROWS_PER_BATCH))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )

    def numbered(batches):
        context = TaskContext.get()
        # A worker is a child of PySpark's daemon, and that one of the executor.
        status = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2]
        executor = int(status.split()[1])
        mine = f"{context.partitionId()}/{context.attemptNumber()}/{executor}"
        for _ in batches:
            pass
        for start in range(0, rows, _ROWS_PER_BATCH):
            time.sleep(_PACE_S)
            while start >= rows // 2 and not gate.exists():
                time.sleep(_PACE_S)
            values = [f"{mine}/{n}" for n in range(start, start + _ROWS_PER_BATCH)]
            places = [context.partitionId() % 3] * _ROWS_PER_BATCH
            yield pa.RecordBatch.from_arrays(
                [pa.array(values), pa.array(places, pa.int32())], names=["value", "partition"]
            )

    (
        spark.range(0, tasks, 1, tasks)
        .mapInArrow(numbered, "value string, partition int")
        .write.format("kafkaproto")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.batch.size", "4000")
        .option("kafka.linger.ms", "0")
        .option("topic", topic)
        .mode("append")
        .save()
    )
    print("written", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
