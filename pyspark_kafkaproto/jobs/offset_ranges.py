"""The main job: read what a group has not seen yet, keep it as Parquet, then commit.

From the group's committed offsets (the earliest ones the first time) to the latest: one DataFrame,
counted per partition and key, written to a folder named by its ranges; only then are the offsets of
exactly these ranges committed. A run that fails before the commit leaves the committed offsets
alone, and the next run replaces what it had written: no record is lost, none is there twice.

Run it with `./spark-submit.sh`. Without KAFKA_BOOTSTRAP_SERVERS it starts the dev broker and has
Kafka's own producer tool write sample events first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyspark_kafkaproto import KafkaCluster, OffsetRange, TopicPartition
from pyspark_kafkaproto.devbroker import DevBroker, default_data_dir
from pyspark_kafkaproto.errors import ConfigError, DataLoss

PARTITIONS = 4
_MOST_NAME = 100
_RANGES_FILE = "_ranges.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the job once."""
    options = _parse(arguments)
    with _bootstrap(options) as servers, KafkaCluster({"bootstrap.servers": servers}) as cluster:
        ranges = uncommitted_ranges(cluster, options.topic, options.group)
        count = 0
        if any(item.count for item in ranges):
            spark = SparkSession.builder.appName("offset-ranges").getOrCreate()
            folder = write_rows(read(spark, servers, ranges), options.out / options.topic, ranges)
            count = summarise(spark.read.parquet(str(folder)))
        cluster.set_consumer_offsets(options.group, stops(ranges))
        print(f"read {count} records")
        print(lag_table(cluster, options.topic, options.group))


def uncommitted_ranges(cluster: KafkaCluster, topic: str, group: str) -> list[OffsetRange]:
    """Per partition what lies between the group's committed offset and the latest one."""
    partitions = cluster.get_partitions({topic})
    committed = cluster.get_consumer_offsets(group, partitions)
    earliest = cluster.get_earliest_leader_offsets(partitions - committed.keys())
    latest = cluster.get_latest_leader_offsets(partitions)
    starts = earliest | committed
    for item in partitions:
        if starts[item] > latest[item]:
            raise DataLoss(
                "PARTITION_OFFSET_CHANGED",
                f"Group {group} has committed offset {starts[item]} of {item}, which ends at "
                f"{latest[item]}: the topic was created anew, or lost its end. Reset the group's "
                "offsets to go on.",
            )
    return [OffsetRange(*item, starts[item], latest[item]) for item in sorted(partitions)]


def read(spark: SparkSession, servers: str, ranges: Sequence[OffsetRange]) -> DataFrame:
    """The records of `ranges`."""
    assigned: dict[str, list[int]] = {}
    for item in ranges:
        assigned.setdefault(item.topic, []).append(item.partition)
    return (
        spark.read.format("kafkaproto")
        .option("kafka.bootstrap.servers", servers)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", _offsets_json(starts(ranges)))
        .option("endingOffsets", _offsets_json(stops(ranges)))
        .load()
    )


def write_rows(rows: DataFrame, place: Path, ranges: Sequence[OffsetRange]) -> Path:
    """Write `rows` to a folder of their own below `place`; it appears whole or not at all.

    Folders that `ranges` reads anew are what a run left whose commit failed: they are replaced.
    """
    place.mkdir(parents=True, exist_ok=True)
    draft = place / "_draft"
    rows.write.mode("overwrite").parquet(str(draft))
    (draft / _RANGES_FILE).write_text(json.dumps([astuple(item) for item in ranges]))
    for leftover in _leftovers(place, ranges):
        shutil.rmtree(leftover)
    return draft.rename(place / _folder_name(ranges))


def summarise(rows: DataFrame) -> int:
    """Show the number of records per partition and key; give the number of all."""
    per_key = rows.groupBy("partition", sf.col("key").cast("string").alias("key")).count().cache()
    per_key.orderBy("partition", "key").show(50, truncate=False)
    total = per_key.agg(sf.coalesce(sf.sum("count"), sf.lit(0))).head()
    return 0 if total is None else int(total[0])


def lag_table(cluster: KafkaCluster, topic: str, group: str) -> str:
    """Group · Topic · Partition · Offset · LogSize · Lag, a line per partition."""
    partitions = sorted(cluster.get_partitions({topic}))
    committed = cluster.get_consumer_offsets(group, partitions)
    latest = cluster.get_latest_leader_offsets(partitions)
    rows: list[tuple[object, ...]] = [("Group", "Topic", "Partition", "Offset", "LogSize", "Lag")]
    for item in partitions:
        offset = committed.get(item)
        lag = "-" if offset is None else latest[item] - offset
        rows.append((group, *item, "-" if offset is None else offset, latest[item], lag))
    widths = [max(len(str(row[at])) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def starts(ranges: Sequence[OffsetRange]) -> dict[TopicPartition, int]:
    """Where each range starts."""
    return {item.topic_partition: item.start or 0 for item in ranges}


def stops(ranges: Sequence[OffsetRange]) -> dict[TopicPartition, int]:
    """Where each range ends: what to commit once it was read."""
    return {item.topic_partition: item.stop or 0 for item in ranges}


def _offsets_json(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)


def _folder_name(ranges: Sequence[OffsetRange]) -> str:
    name = "_".join(f"{item.partition}.{item.start}-{item.stop}" for item in ranges)
    if len(name) <= _MOST_NAME:
        return f"ranges-{name}"
    return f"ranges-{hashlib.sha256(name.encode()).hexdigest()}"


def _leftovers(place: Path, ranges: Sequence[OffsetRange]) -> list[Path]:
    """Folders whose rows are all in what is read now.

    Raises:
        ConfigError: one holds rows that are read again and others that are not: neither keeping nor
            removing it would be right.
    """
    first = starts(ranges)
    found = []
    for file in place.glob(f"ranges-*/{_RANGES_FILE}"):
        written = [OffsetRange(*item) for item in json.loads(file.read_text())]
        written = [item for item in written if item.count]
        again = [
            item for item in written if (item.stop or 0) > first.get(item.topic_partition, 2**63)
        ]
        if any((item.start or 0) < first[item.topic_partition] for item in again) or (
            again and len(again) < len(written)
        ):
            raise ConfigError(
                "--out",
                str(file.parent),
                f"it holds a part of what is read now ({', '.join(map(str, again))}): the group's "
                "offsets were moved, or committed in part; move this folder away, or take another one",
            )
        if again:
            found.append(file.parent)
    return found


@contextmanager
def _bootstrap(options: argparse.Namespace) -> Iterator[str]:
    """The brokers to talk to: those named, or the dev broker with fresh sample events."""
    if options.bootstrap_servers:
        yield options.bootstrap_servers
        return
    with DevBroker(options.broker_data) as broker:
        with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            is_there = options.topic in cluster.describe().topics
        if not is_there:
            broker.create_topic(options.topic, PARTITIONS)
        broker.produce(options.topic, _sample_events(options.events), key_separator=":")
        yield broker.bootstrap_servers


def _sample_events(count: int) -> list[str]:
    """Lines `key:value` for Kafka's console producer."""
    return [
        f"device-{number % 10}:" + json.dumps({"number": number, "celsius": 15 + number % 17})
        for number in range(count)
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "")
    parser.add_argument("--bootstrap-servers", default=servers, help="default: the dev broker")
    parser.add_argument("--topic", default="kafka_protocol_test")
    parser.add_argument("--group", default="offset-ranges")
    parser.add_argument("--out", type=Path, default=Path("out"), help="a local folder")
    parser.add_argument("--events", type=int, default=1000, help="sample events for the dev broker")
    parser.add_argument(
        "--broker-data",
        type=Path,
        default=default_data_dir(),
        help="where the dev broker keeps its data",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
