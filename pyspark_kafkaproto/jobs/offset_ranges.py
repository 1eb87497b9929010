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
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyspark_kafkaproto import KafkaCluster, OffsetRange, committing, plan_ranges, ranges_json
from pyspark_kafkaproto.cluster import lag_text
from pyspark_kafkaproto.cluster.silence import waiting_aloud
from pyspark_kafkaproto.devbroker import DevBroker, default_data_dir
from pyspark_kafkaproto.devbroker.processes import end_with_starter
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.jobs.folders import Folders

PARTITIONS = 4
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")
# What Spark takes for a pattern in a path that is read.
_NO_GLOB = re.compile(r"([\[\]{}*?\\])")
_LONGEST_NAME = 150  # of a folder, whose limit is 255 as a rule
NAME = "offset-ranges"  # of the application, and of its client in the brokers' logs and quotas


def run(arguments: Sequence[str] | None = None) -> int:
    """`main`, with what is wrong said in a line; the exit code."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # by spark-submit
        end_with_starter()
    try:
        main(arguments)
    except KafkaProtoError as error:
        _say(f"Error: {error}")
        return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the job once."""
    options = _parse(arguments)
    with _bootstrap(options) as servers, KafkaCluster(_properties(servers)) as cluster:
        with waiting_aloud(lambda: cluster.waits_for, _say):
            belongs_to = origin(cluster, options.topic)
        folders = Folders(options.out / options.topic / folder_name(options.group), belongs_to)
        with folders.locked():
            planned = plan_ranges(
                cluster, {options.topic}, options.group, max_records=options.max_records
            )
            ranges = folders.widened(planned)
            check = partial(check_origin, cluster, options.topic, belongs_to)
            with committing(cluster, options.group, ranges):
                check()  # here: whether it is made again from now on is seen before the commit, too
                is_news = any(item.count for item in ranges)
                count = _keep(folders, servers, ranges, check) if is_news else 0
        print(f"read {count} records")
        print(lag_text(cluster.lag({options.group}, {options.topic})))


def folder_name(group: str) -> str:
    """A folder of that group alone, whatever it is called: `..`, or `a:b`, which is no path."""
    quoted = quote(group, safe="")
    if len(quoted) > _LONGEST_NAME:
        quoted = quoted[:_LONGEST_NAME] + sha256(group.encode()).hexdigest()
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def origin(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """What the offsets belong to: a topic that is created anew begins at 0 again."""
    topology = cluster.describe({topic}, must_exist=True)
    topic_id = topology.topic(topic).topic_id
    return {"cluster": topology.cluster_id or "", "topic": topic_id.hex() if topic_id else topic}


def check_origin(cluster: KafkaCluster, topic: str, belongs_to: Mapping[str, str]) -> None:
    """Refuse to go on where the offsets are of another topic than when the run began.

    Raises:
        ConfigError: it was made again since; names it.
    """
    now = cluster.believed(lambda: origin(cluster, topic), lambda found: found == belongs_to)
    if now != belongs_to:
        why = (
            "it was deleted and made again since this run began, so its offsets are of other "
            "records. Nothing was replaced or committed: run it again"
        )
        raise ConfigError("--topic", topic, why)


def _keep(
    folders: Folders, servers: str, ranges: Sequence[OffsetRange], check: Callable[[], None]
) -> int:
    """Read and write the records of `ranges`; how many they are.

    Args:
        folders: where to.
        servers: where from.
        ranges: what.
        check: called before anything is replaced; raises what speaks against it.
    """
    folders.replaced_by(ranges)  # what is in the way shows before a long read, not after it
    _say(f"reading {', '.join(str(item) for item in ranges if item.count)}")
    spark = SparkSession.builder.appName(NAME).getOrCreate()
    folder = folders.write(read(spark, servers, ranges), ranges, check)
    _say(f"the rows are in {folder}")
    return summarise(spark.read.parquet(_NO_GLOB.sub(r"\\\1", str(folder))))


def read(spark: SparkSession, servers: str, ranges: Sequence[OffsetRange]) -> DataFrame:
    """The records of `ranges`."""
    return (
        spark.read.format("kafkaproto")
        .options(**{f"kafka.{name}": value for name, value in _properties(servers).items()})
        .option("offsetRanges", ranges_json(ranges))
        .load()
    )


def _properties(servers: str) -> dict[str, str]:
    return {"bootstrap.servers": servers, "client.id": NAME}


def summarise(rows: DataFrame) -> int:
    """Show the number of records per partition and key; give the number of all."""
    # Counted twice and not cached: Spark sizes the stages of what is cached by its settings,
    # 200 tasks each, and all others by their data. Counting Parquet's rows reads its footers alone.
    per_key = rows.groupBy("partition", sf.col("key").cast("string").alias("key")).count()
    per_key.orderBy("partition", "key").show(50, truncate=False)
    return rows.count()


@contextmanager
def _bootstrap(options: argparse.Namespace) -> Iterator[str]:
    """The brokers to talk to: those named, or the dev broker with fresh sample events."""
    if options.bootstrap_servers:
        yield options.bootstrap_servers
        return
    data = options.broker_data or default_data_dir()
    events = 1000 if options.events is None else options.events
    _say(f"starting Kafka on this machine, its data in {data}")
    with DevBroker(data) as broker:
        with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            is_there = options.topic in cluster.describe().topics
        if not is_there:
            broker.create_topic(options.topic, PARTITIONS)
        _say(f"Kafka's own producer writes {events} sample events to {options.topic}")
        broker.produce(options.topic, _sample_events(events), key_separator=":")
        yield broker.bootstrap_servers


def _say(text: str) -> None:
    """Progress and errors go to standard error: the result stands alone."""
    print(text, file=sys.stderr, flush=True)


def _sample_events(count: int) -> list[str]:
    """Lines `key:value` for Kafka's console producer."""
    return [
        f"device-{number % 10}:" + json.dumps({"number": number, "celsius": 15 + number % 17})
        for number in range(count)
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or None
    parser.add_argument(
        "--bootstrap-servers", type=_name, default=servers, help="default: the dev broker"
    )
    parser.add_argument("--topic", default="kafka_protocol_test")
    parser.add_argument("--group", type=_name, default="offset-ranges")
    parser.add_argument(
        "--max-records",
        type=_count,
        help="of all partitions, and what a run has left whose commit failed; default: all",
    )
    parser.add_argument("--out", type=_folder, default=Path("out"), help="a local folder")
    parser.add_argument(
        "--events", type=_events, help="sample events for the dev broker; default: 1000"
    )
    parser.add_argument(
        "--broker-data",
        type=_folder,
        help="where the dev broker keeps its data; default: as `kafkaproto devbroker start`",
    )
    options = parser.parse_args(arguments)
    for flag in ("events", "broker_data") if options.bootstrap_servers else ():
        if getattr(options, flag) is not None:
            name = "--" + flag.replace("_", "-")
            parser.error(f"{name} is for the dev broker: this is {options.bootstrap_servers}")
    return options


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a name")
    return text


def _folder(text: str) -> Path:
    """Not the working directory where a variable of the shell is not set."""
    return Path(_name(text))


def _events(text: str) -> int:
    if text != "0" and not _COUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or more, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(run())
