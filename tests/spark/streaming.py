"""Streaming queries of either source into a folder of rows, with a checkpoint beside them."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.records import NewRecord
from tests.spark.writing import produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

OURS, THEIRS = "kafkaproto", "kafka"
NOW = {"availableNow": True}
# What Spark's own connector repeats for a minute.
SOON = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 10}

_PATIENCE_S = 120
_PAUSE_S = 0.05


class Place:
    """Where one query keeps its checkpoint and its rows, through any number of runs."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self.spark = spark
        self.servers = servers
        self.folder = folder

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def frame(self, source: str = OURS, **options: object) -> DataFrame:
        return stream(self.spark, source, self.servers, **options)

    def start(self, source: str = OURS, *, trigger: Any = None, **options: object) -> Any:
        """A running query; without a trigger, the default one."""
        return self.write(self.frame(source, **options), trigger)

    def write(self, frame: DataFrame, trigger: Any = None) -> StreamingQuery:
        writer = frame.writeStream.format("parquet").option(
            "checkpointLocation", str(self.checkpoint)
        )
        if trigger:
            writer = writer.trigger(**trigger)
        return writer.start(str(self.folder / "rows"))

    def run(self, source: str = OURS, **options: object) -> list[Any]:
        """A run under Trigger.AvailableNow to its end; the progress of its batches."""
        return finish(self.start(source, trigger=NOW, **options))

    def rows(self) -> list[Row]:
        frame = self.spark.read.parquet(str(self.folder / "rows"))
        return frame.orderBy("topic", "partition", "offset").collect()

    def values(self) -> list[str]:
        return sorted(row.value.decode() for row in self.rows())

    def offsets(self) -> list[tuple[int, int]]:
        """(partition, offset) of each row."""
        return [(row.partition, row.offset) for row in self.rows()]

    def logged(self) -> dict[str, dict[str, int]]:
        """The offsets that the engine has logged last."""
        last = max((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        offsets: dict[str, dict[str, int]] = json.loads(last.read_text().splitlines()[-1])
        return offsets

    def forget_last_batch(self) -> int:
        """As a kill leaves it that comes after the batch's offsets are logged; its number."""
        last = max(int(file.name) for file in (self.checkpoint / "commits").glob("[0-9]*"))
        for folder in (self.checkpoint / "commits", self.folder / "rows" / "_spark_metadata"):
            for name in (f"{last}", f".{last}.crc"):
                (folder / name).unlink(missing_ok=True)
        return last

    def copy(self, name: str) -> Place:
        """The same place, to go on from it in another way."""
        folder = self.folder.with_name(name)
        shutil.copytree(self.checkpoint, folder / "checkpoint")
        return Place(self.spark, self.servers, folder)


def stream(spark: SparkSession, source: str, servers: str, **options: object) -> DataFrame:
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        reader = reader.option(name.replace("kafka_", "kafka."), str(value))
    return reader.load()


def finish(query: StreamingQuery) -> list[Any]:
    """Wait for a query that ends by itself; the progress of its batches."""
    try:
        assert query.awaitTermination(_PATIENCE_S), f"not done within {_PATIENCE_S} s"
    finally:
        query.stop()
    return list(query.recentProgress)


def wait_until(what: str, is_so: Callable[[], bool], query: StreamingQuery | None = None) -> None:
    """Return once `is_so`; raise what `query` has failed with, or that it takes too long."""
    deadline = Deadline.after(_PATIENCE_S)
    while not is_so():
        if query is not None and (error := query.exception()):
            raise error
        deadline.check(what)
        time.sleep(_PAUSE_S)


def is_at(query: StreamingQuery, offset: int) -> bool:
    """Whether the query has read its topics up to so many offsets in all."""
    return read_to(query) >= offset


def read_to(query: StreamingQuery) -> int:
    """Up to how many offsets in all it has read its topics; fewer again where one is gone."""
    done = query.lastProgress
    ends = json.loads(done["sources"][0]["endOffset"]) if done else {}
    return sum(end for topic in ends.values() for end in topic.values())


def failure_of(query: StreamingQuery) -> str:
    """The text of the error that the query ends with."""
    try:
        query.awaitTermination(_PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - of any kind, from the JVM
        return str(error)
    finally:
        query.stop()
    raise AssertionError("the query did not fail")


def put(servers: str, topic: str, partition: int, values: Iterable[str], **fields: int) -> None:
    """Write one batch of records, with a header each; `fields` as for `encode_batch`."""
    now_ms = int(time.time() * 1000)
    records = [
        NewRecord(value.encode(), b"key", now_ms, [(b"h", value.encode())]) for value in values
    ]
    produce(servers, topic, partition, records, **fields)


def numbered(start: int, stop: int) -> list[str]:
    return [f"{number:06}" for number in range(start, stop)]
