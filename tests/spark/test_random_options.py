"""Options drawn at random, of reads that end: Spark's own connector gives the same rows.

Topics with what moves offsets and times: several codecs, times that go back, markers and aborted
transactions, deleted heads, partitions with nothing in them. Bounds are those that both take;
where they differ is `test_differences`'.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pyspark_kafkaproto import KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.records import NewRecord
from pyspark_kafkaproto.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from tests.spark.rival import assert_same_rows
from tests.spark.writing import produce

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

FIRST_MS = 1_700_000_000_000
SOON = {"kafkaConsumer_pollTimeoutMs": 3000}


class Log(NamedTuple):
    """What is in a partition, from the first offset to behind the last."""

    first: int
    end: int


@pytest.fixture(scope="module")
def logs(broker, new_topic):
    """Topics, and of each the bounds of its partitions."""
    draw = Random("topics")
    servers = broker.bootstrap_servers
    plain, transactional, cut, empty = (new_topic(partitions=count) for count in (4, 2, 2, 1))
    for partition in (0, 1, 3):
        fill(draw, servers, plain, partition)
    for partition in (0, 1):
        fill(draw, servers, cut, partition)
    for number in range(6):
        write_transaction(draw, servers, transactional, number)
    with KafkaCluster({"bootstrap.servers": servers}) as kafka:
        partitions = kafka.get_partitions({plain, transactional, cut, empty})
        ends = kafka.get_latest_leader_offsets(partitions)
        half, whole = TopicPartition(cut, 0), TopicPartition(cut, 1)
        kafka.delete_records({half: ends[half] // 2, whole: ends[whole]})
        firsts = kafka.get_earliest_leader_offsets(partitions)
    found: dict[str, dict[int, Log]] = {}
    for item in sorted(partitions):
        found.setdefault(item.topic, {})[item.partition] = Log(firsts[item], ends[item])
    return found


def fill(draw: Random, servers: str, topic: str, partition: int) -> None:
    """Some batches, each in another codec, of times that go forth and back."""
    for number, codec in enumerate((NONE, GZIP, SNAPPY, LZ4, ZSTD)):
        begin_ms = FIRST_MS + 1000 * number + draw.randrange(-900, 900)
        records = [
            NewRecord(
                draw.choice([None, b"", b"v%d" % at, bytes(draw.randrange(300))]),
                draw.choice([None, b"", b"k%d" % at]),
                begin_ms + draw.choice([0, 10, 700]) * at,
                [(b"h", draw.choice([None, b"", b"x"]))] * draw.choice([0, 0, 2]),
            )
            for at in range(draw.randrange(1, 9))
        ]
        produce(servers, topic, partition, records, codec=codec)


def write_transaction(draw: Random, servers: str, topic: str, number: int) -> None:
    """Some records, kept or thrown away."""
    config = {"bootstrap.servers": servers, "transactional.id": f"{topic}-{number % 2}"}
    with Producer(config) as producer:
        producer.begin_transaction()
        for at in range(draw.randrange(1, 9)):
            time_ms = FIRST_MS + 1000 * number + at
            place = {"topic": topic, "partition": draw.randrange(2), "timestamp_ms": time_ms}
            producer.send([ProducerRecord(value=b"%d" % at, **place)])
        if draw.random() < 0.6:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


class Question:
    """The options of one read, whose starts do not lie beyond its ends."""

    def __init__(self, seed: int, logs: dict[str, dict[int, Log]]) -> None:
        self._draw = draw = Random(seed)
        topics = draw.sample(sorted(logs), draw.randrange(1, len(logs) + 1))
        self._logs = {topic: dict(logs[topic]) for topic in topics}
        self.options: dict[str, object] = dict(SOON)
        self.options |= draw.choice([self._subscribe, self._pattern, self._assign])()
        self.options |= draw.choice([dict, self._by_offset, self._by_time])()
        self.options |= self._others()

    def _subscribe(self) -> dict[str, object]:
        return {"subscribe": self._draw.choice([",", " , "]).join(self._logs)}

    def _pattern(self) -> dict[str, object]:
        return {"subscribePattern": "|".join(self._logs)}

    def _assign(self) -> dict[str, object]:
        for topic, found in self._logs.items():
            kept = self._draw.sample(sorted(found), self._draw.randrange(1, len(found) + 1))
            self._logs[topic] = {number: found[number] for number in kept}
        return {"assign": json.dumps({topic: list(found) for topic, found in self._logs.items()})}

    def _by_offset(self) -> dict[str, object]:
        def start(log: Log) -> int:
            drawn = self._draw.randrange(log.first, (log.first + log.end) // 2 + 1)
            return self._draw.choice([drawn, drawn, -2])

        def end(log: Log) -> int:
            drawn = self._draw.randrange((log.first + log.end) // 2, log.end + 1)
            return self._draw.choice([drawn, drawn, -1])

        bounds = {"startingOffsets": self._of_each(start), "endingOffsets": self._of_each(end)}
        return self._some(bounds)

    def _by_time(self) -> dict[str, object]:
        starts = self._time("starting", [-5000, 0, 500, 2000])
        ends = self._time("ending", [2000, 2500, 5000, 10**8])
        # Without it a partition with nothing so late fails the read.
        return self._some(starts | ends) | {"startingOffsetsByTimestampStrategy": "latest"}

    def _time(self, bound: str, steps_ms: list[int]) -> dict[str, object]:
        def draw(_: Log | None = None) -> int:
            return FIRST_MS + self._draw.choice(steps_ms)

        if self._draw.random() < 0.5:
            return {f"{bound}Timestamp": draw()}
        return {f"{bound}OffsetsByTimestamp": self._of_each(draw)}

    def _of_each(self, bound: Callable[[Log], int]) -> str:
        return json.dumps(
            {
                topic: {str(number): bound(log) for number, log in found.items()}
                for topic, found in self._logs.items()
            }
        )

    def _others(self) -> dict[str, object]:
        committed = self._draw.choice(["read_committed", "read_uncommitted"])
        return self._some(
            {
                "includeHeaders": "true",
                "failOnDataLoss": self._draw.choice(["true", "false"]),
                "kafka_isolation.level": committed,
                "minPartitions": self._draw.choice([1, 3, 20]),
            }
        )

    def _some(self, options: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in options.items() if self._draw.random() < 0.6}


def ask(spark, broker, logs, seeds: range) -> int:
    """How many rows both gave."""
    rows = 0
    for seed in seeds:
        options = Question(seed, logs).options
        print(seed, options)  # pytest shows the last one of a failure
        rows += len(assert_same_rows(spark, broker.bootstrap_servers, **options))
    return rows


def test_whatever_options_are_given_rows_are_the_same(spark, broker, logs):
    assert ask(spark, broker, logs, range(6)) > 60


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whatever_many_options_are_given(spark, broker, logs):
    assert ask(spark, broker, logs, range(6, 300)) > 3000
