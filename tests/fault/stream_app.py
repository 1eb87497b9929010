"""A small streaming application that says where it is, and stays there until it is killed.

    python -m tests.fault.stream_app SERVERS TOPIC FOLDER [PHASE]

Each micro-batch becomes the folder `rows/<batch id>`, written over when the batch is run again. At
PHASE it makes the file `marks/<phase>-<batch id>` and waits: for the kill, not for anything else.
Without a phase it ends when everything is read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

LOGGED, PLANNED, READING, WRITTEN, COMMITTED = PHASES = (
    "offsets logged",
    "planned",
    "reading",
    "written",
    "committed",
)
COLUMNS = "partition int, offset bigint, value binary"
_PAUSE_S = 0.01


def main(servers: str, topic: str, folder: Path, phase: str = "") -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    frame = (
        spark.readStream.format("kafkaproto")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("maxOffsetsPerTrigger", 240)
        .load()
        .select("partition", "offset", "value")
    )
    writer = frame.writeStream.foreachBatch(partial(write, folder, phase))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    if not phase:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()
    spark.stop()


def write(folder: Path, phase: str, frame: DataFrame, batch: int) -> None:
    """One micro-batch, through all its phases but the last one."""
    at = partial(stay, folder, phase, batch)
    at(LOGGED)
    frame._jdf.queryExecution().toRdd().getNumPartitions()
    at(PLANNED)
    read = frame.mapInArrow(partial(pass_on, folder, phase, batch), COLUMNS)
    read.write.mode("overwrite").parquet(str(folder / "rows" / str(batch)))
    at(WRITTEN)


def pass_on(
    folder: Path, phase: str, batch: int, rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """All rows, in the task that reads them."""
    for each in rows:
        stay(folder, phase, batch, READING)
        yield each


def stay(folder: Path, phase: str, batch: int, here: str) -> None:
    """Where this is the phase: say so, and wait for the end."""
    if here != phase:
        return
    (folder / "marks" / f"{here}-{batch}").touch()
    while True:
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
