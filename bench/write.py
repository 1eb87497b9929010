"""How fast do we write, beside Spark's own sink? One run, rounds interleaved.

    python bench/write.py            five codecs, both tunings, five rounds
    python bench/write.py --quick    few rows, one round: does everything run?
    python bench/write.py --memory   memory of Spark's Python workers instead of speed
    python bench/write.py --exactly-once   what transactions cost, for many rows and for 1,000

Both sinks run with conf/, acks=all and idempotent, and write the same rows of a Parquet folder to a
fresh topic. `alike` gives both the same batch size and linger, `defaults` leaves each its own.
`Producer` and `pre-encoded` run without Spark: the second sends batches that were encoded before.
Needs the extras `spark` and `bench`; a broker of its own, or KAFKA_BOOTSTRAP_SERVERS.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from read import broker, machine_facts, progress
from reading.bars import MIB, Bar
from reading.processes import RunFailed, SparkApp
from reading.rival_jars import connector_jars
from reading.tables import bar_table, markdown
from reading.workloads import CODECS, SMALL_BYTES, payload_lines

from pyspark_kafkaproto import KafkaCluster, Producer, TopicPartition
from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.client.writing.batches import Batch, Rows, Span
from pyspark_kafkaproto.client.writing.identity import new_identity
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sending import Sender
from pyspark_kafkaproto.client.writing.sequences import Sequences
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.errors import DevBrokerFailed
from pyspark_kafkaproto.net import Deadline, ProducerConfig
from pyspark_kafkaproto.records import BatchBuilder

ROOT = Path(__file__).resolve().parent.parent
OURS, RIVAL = "kafkaproto", "kafka"
SPARK_CONF = {"spark.master": "local[2]", "spark.ui.enabled": "false"}
PARTITIONS = 4
TUNED = {"batch.size": str(256 << 10), "linger.ms": "100"}
NEEDED = {"alike": 1.5, "defaults": 3.0}
ENCODED_SHARE = 0.80
TRANSACTIONAL_SHARE = 0.80
MANY, FEW = 1_000_000, 1_000
MOST_MARKERS = 100  # a control record per task and partition
MEMORY_BYTES = 100_000_000
GROWTH_BYTES = 20_000_000
FULL_RECORDS, QUICK_RECORDS = 4_000_000, 200_000

# (codec, tuning or "alone", who) -> seconds of each round
Results = dict[tuple[str, str, str], list[float]]


class Bench:
    """A broker, the rows to write, and an application that writes them."""

    def __init__(self, tools: KafkaTools, app: SparkApp, folder: Path, records: int) -> None:
        self.tools = tools
        self.app = app
        self.records = records
        self.is_transactional = False
        self.rows = folder / f"rows-{records}"
        self._numbers = itertools.count()
        lines = folder / "lines"
        lines.write_text("\n".join(payload_lines(SMALL_BYTES)))
        made = app.ask(
            "make_rows",
            str(self.rows),
            {"lines": str(lines), "records": str(records), "tasks": "2"},
        )
        assert made == {"records": records}, made

    def into_topic(self, write: Callable[[str], float]) -> float:
        """Seconds that `write` takes to fill a fresh topic, whose records are counted after it."""
        topic = f"bench-write-{time.time_ns()}-{next(self._numbers)}"
        self.tools.create_topic(topic, PARTITIONS)
        try:
            seconds = write(topic)
            with KafkaCluster({"bootstrap.servers": self.tools.bootstrap_servers}) as cluster:
                ends = cluster.get_latest_leader_offsets(cluster.get_partitions({topic}))
            if not 0 <= sum(ends.values()) - self.records <= MOST_MARKERS * self.is_transactional:
                raise RunFailed(f"{topic} holds {sum(ends.values())} of {self.records} records")
        finally:
            self.tools.run_tool(
                "org.apache.kafka.tools.TopicCommand",
                *("--bootstrap-server", self.tools.bootstrap_servers),
                *("--delete", "--topic", topic),
            )
        return seconds

    def by_spark(self, source: str, codec: str, tuning: str) -> float:
        """Seconds of one write by Spark."""
        properties = {"acks": "all", "enable.idempotence": "true", "compression.type": codec}
        properties |= TUNED if tuning == "alike" else {}
        options = {f"kafka.{name}": value for name, value in properties.items()}
        options |= {
            "kafka.bootstrap.servers": self.tools.bootstrap_servers,
            "rows": str(self.rows),
        }
        self.app.ask("collect_garbage")
        return self.into_topic(
            lambda topic: self.app.ask("write", source, options | {"topic": topic})["seconds"]
        )

    def once(self, *, exactly: bool) -> float:
        """Seconds of one write by Spark, in transactions or only idempotent."""
        self.is_transactional = exactly
        options = {
            "kafka.bootstrap.servers": self.tools.bootstrap_servers,
            "rows": str(self.rows),
        }
        options |= {"transactionalIdPrefix": "bench-write"} if exactly else {}
        self.app.ask("collect_garbage")
        return self.into_topic(
            lambda topic: self.app.ask("write", OURS, options | {"topic": topic})["seconds"]
        )

    def alone(self, codec: str, number: int) -> dict[str, float]:
        """Seconds of our producer in this process, and of one that has only to send; a round."""
        batches = [
            pa.RecordBatch.from_arrays([batch.column("value")], names=["value"])
            for batch in pq.ParquetDataset(self.rows).read(["value"]).to_batches(10_000)
        ]
        properties = {
            "bootstrap.servers": self.tools.bootstrap_servers,
            "compression.type": codec,
        }
        ways = {"Producer": _send_rows, "pre-encoded": _send_encoded}
        return {
            who: self.into_topic(lambda topic, send=ways[who]: send(properties, topic, batches))
            for who in in_turn(list(ways), number)
        }


def _send_rows(properties: Mapping[str, str], topic: str, batches: list[pa.RecordBatch]) -> float:
    began = time.perf_counter()
    with Producer(properties, topic=topic) as producer:
        for batch in batches:
            producer.send(batch)
    return time.perf_counter() - began


def _send_encoded(
    properties: Mapping[str, str], topic: str, batches: list[pa.RecordBatch]
) -> float:
    """The same rows, encoded before the clock starts: what sending alone costs."""
    config = ProducerConfig.parse(properties)
    router = Router(config.client)
    queues = _queues(config, router, topic)
    sender = Sender(config, router, _no_error, _no_error, queues=lambda: queues)
    encoded = list(_encoded(config, queues, batches))
    began = time.perf_counter()
    for queue, data, records, sequence in encoded:
        deadline = Deadline.after(config.delivery_timeout_s)
        spans = [Span(Rows(0), None, 0, records)]
        sender.offer(queue, Batch(data, records, queue.next_order(), sequence, spans, deadline))
        if sender.offered_bytes >= config.max_request_size:
            sender.pump()
        if sender.held_bytes > config.buffer_memory // 2:
            sender.drain(config.buffer_memory // 2)
    sender.drain()
    seconds = time.perf_counter() - began
    router.close()
    return seconds


def _queues(config: ProducerConfig, router: Router, topic: str) -> list[PartitionQueue]:
    """A queue for each partition, its leader known."""
    identity = new_identity(router)
    topology = router.topology({topic}, router.deadline())
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return [
        PartitionQueue(
            partition,
            Sequences(identity),
            config.batch_size,
            topic_id=topology.topic(topic).topic_id,
            leader=topology.leader(partition),
        )
        for partition in partitions
    ]


def _encoded(
    config: ProducerConfig, queues: list[PartitionQueue], batches: list[pa.RecordBatch]
) -> Iterator[tuple[PartitionQueue, bytes, int, int]]:
    """Full record batches, one partition after the other."""
    turns = itertools.cycle(queues)
    queue = next(turns)
    for batch in batches:
        columns, start = write_columns(batch), 0
        while start < batch.num_rows:
            if queue.builder is None:
                queue.builder = BatchBuilder(
                    codec=config.codec, level=config.level, limit_bytes=config.batch_size
                )
            start = queue.builder.append(columns, None, start, time.time_ns() // 1_000_000)
            if start < batch.num_rows:
                yield (queue, *queue.sequences.seal(queue.builder))
                queue = next(turns)
    for queue in queues:
        if queue.builder is not None and queue.builder.rows:
            yield (queue, *queue.sequences.seal(queue.builder))


def _no_error(*what: object) -> NoReturn:
    raise RunFailed(f"the broker refused {what}")


def measure(bench: Bench, codecs: tuple[str, ...], rounds: int) -> Results:
    """Rounds of one run of each; a first round, not kept, warms everything up."""
    results: Results = {}
    for codec in codecs:
        for number in range(rounds + 1):
            # Whoever is first comes behind what filled the most memory and disk of all.
            for tuning, source in in_turn(list(itertools.product(NEEDED, (OURS, RIVAL))), number):
                progress(f"{codec}: round {number} of {rounds}: {source}, {tuning}")
                seconds = bench.by_spark(source, codec, tuning)
                if number:
                    results.setdefault((codec, tuning, source), []).append(seconds)
            progress(f"{codec}: round {number} of {rounds}: without Spark")
            for who, seconds in bench.alone(codec, number).items():
                if number:
                    results.setdefault((codec, "alone", who), []).append(seconds)
    progress("")
    return results


def in_turn(whole: list[Any], number: int) -> list[Any]:
    """The same, beginning with another one for each `number`."""
    first = number % len(whole)
    return whole[first:] + whole[:first]


def bars_of(results: Results) -> list[Bar]:
    """Every bar that these results say something about."""
    middle = {key: median(seconds) for key, seconds in results.items()}
    bars = []
    for (codec, tuning, who), seconds in middle.items():
        if who == OURS:
            ratio = middle[codec, tuning, RIVAL] / seconds
            bars.append(Bar(f"{codec}, {tuning}: Spark's own sink", NEEDED[tuning], ratio))
        elif who == "Producer":
            ratio = middle[codec, tuning, "pre-encoded"] / seconds
            bars.append(Bar(f"{codec}: of sending alone", ENCODED_SHARE, ratio))
    return bars


def memory(tools: KafkaTools, folder: Path, records: int) -> list[Bar]:
    """Peaks of Python workers: ours above one that drops everything, and with ten times the rows.

    Each is a Spark application of its own: a worker's peak never falls.
    """
    peaks: dict[tuple[str, int], int] = {}
    for source, count in (("dropping", records), (OURS, records), (OURS, 10 * records)):
        progress(f"{source}, {count:,} records")
        place = folder / f"{source}-{count}"
        with SparkApp(ROOT / "conf", SPARK_CONF, place) as app:
            bench = Bench(tools, app, place, count)
            options = {"rows": str(bench.rows)}
            if source == OURS:
                options |= {"kafka.bootstrap.servers": tools.bootstrap_servers}
                bench.into_topic(
                    lambda topic, app=app, options=options: app.ask(
                        "write", OURS, options | {"topic": topic}
                    )["seconds"]
                )
            else:
                app.ask("write", source, options)
            peaks[source, count] = max(app.ask("peaks")["peaks_kib"]) << 10
    progress("")
    for (source, count), peak in peaks.items():
        print(f"{source}, {count:,} records: peak {peak / 1e6:,.0f} MB")
    above = peaks[OURS, records] - peaks["dropping", records]
    growth = peaks[OURS, 10 * records] - peaks[OURS, records]
    return [
        Bar("above a writer that drops everything", MEMORY_BYTES / MIB, above / MIB, "MiB", True),
        Bar("growth over ten times the rows", GROWTH_BYTES / MIB, growth / MIB, "MiB", True),
    ]


def exactly_once(
    tools: KafkaTools, app: SparkApp, folder: Path, rounds: int
) -> tuple[Results, list[Bar]]:
    """Transactional writing beside idempotent, interleaved; the first round warms up."""
    results: Results = {}
    for records in (MANY, FEW):
        bench = Bench(tools, app, folder, records)
        for number in range(rounds + 1):
            for who, exactly in in_turn([("idempotent", False), ("transactional", True)], number):
                progress(f"{records:,} records: round {number} of {rounds}: {who}")
                seconds = bench.once(exactly=exactly)
                if number:
                    results.setdefault((f"{records:,} records", "defaults", who), []).append(
                        seconds
                    )
    progress("")
    middle = {(key[0], key[2]): median(seconds) for key, seconds in results.items()}
    for (what, who), seconds in middle.items():
        print(f"{what}, {who}: {seconds:.3f} s")
    few, many = f"{FEW:,} records", f"{MANY:,} records"
    pays = middle[few, "transactional"] - middle[few, "idempotent"]
    print(f"a batch of {few} pays {pays * 1000:.0f} ms", end="\n\n")
    ratio = middle[many, "idempotent"] / middle[many, "transactional"]
    return results, [Bar(f"{many}: of idempotent writing", TRANSACTIONAL_SHARE, ratio)]


def table(results: Results, records: int) -> str:
    """One row per measure: medians over the rounds."""
    rows = [
        (f"{codec}, {tuning}, {who}", f"{records / median(seconds):,.0f}",
         f"{median(seconds):.2f}", f"{min(seconds):.2f} to {max(seconds):.2f}")
        for (codec, tuning, who), seconds in results.items()
    ]  # fmt: skip
    return markdown((f"{records:,} records of 100 B", "records/s", "median s", "from … to s"), rows)


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n", flush=True)
    results: Results = {}
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-write-")))
            tools = stack.enter_context(broker(keep=False))
            if options.memory:
                bars = memory(tools, folder, options.records)
            elif options.exactly_once:
                app = stack.enter_context(SparkApp(ROOT / "conf", SPARK_CONF, folder / "app"))
                results, bars = exactly_once(tools, app, folder, options.rounds)
            else:
                conf = SPARK_CONF | {"spark.jars": ",".join(connector_jars())}
                app = stack.enter_context(SparkApp(ROOT / "conf", conf, folder / "app"))
                bench = Bench(tools, app, folder, options.records)
                results = measure(bench, options.codecs, options.rounds)
                bars = bars_of(results)
                print(table(results, options.records), end="\n\n")
    except (RunFailed, DevBrokerFailed) as error:
        print(error, file=sys.stderr)
        return 1
    print(bar_table(bars))
    if options.json:
        found = {" / ".join(key): seconds for key, seconds in results.items()}
        options.json.write_text(json.dumps({"machine": dict(facts), "seconds": found}, indent=1))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--records", type=int, help="of 100 B (default 4,000,000)")
    add("--codecs", type=lambda text: tuple(text.split(",")), default=CODECS)
    add("--rounds", type=int, help="kept rounds (default 5); one more warms up")
    add("--memory", action="store_true", help="memory of Python workers instead of speed")
    add("--exactly-once", action="store_true", help="what transactions cost, instead")
    add("--quick", action="store_true", help="few rows, one round, two codecs")
    add("--json", type=Path, help="write everything that was measured to this file")
    options = parser.parse_args()
    if options.quick and options.codecs is CODECS:
        options.codecs = ("none", "zstd")
    options.records = options.records or (QUICK_RECORDS if options.quick else FULL_RECORDS)
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


if __name__ == "__main__":
    sys.exit(main())
