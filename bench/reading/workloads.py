"""What is read: topics of known records, written by Kafka's own producer.

Values are lines of JSON with random fields, the same for each codec, so that a codec has something
real to do: random bytes do not compress, one line repeated compresses to nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.devbroker import KafkaTools

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL_BYTES = 100
LARGE_BYTES = 10_000
_PAGES = ("/", "/cart", "/search", "/orders", "/orders/history", "/account/settings")
_PAYLOAD_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """`records` records with values of `value_bytes` each, spread over `partitions`."""

    records: int
    value_bytes: int
    codec: str
    partitions: int = 4

    @property
    def name(self) -> str:
        """As in the tables: `100 B lz4`, `1,000 partitions`."""
        if self.is_wide:
            return f"{self.partitions:,} partitions"
        size = (
            f"{self.value_bytes} B" if self.value_bytes < 1000 else f"{self.value_bytes // 1000} kB"
        )
        return f"{size} {self.codec}"

    @property
    def is_wide(self) -> bool:
        """Whether it is about the number of partitions."""
        return self.partitions > 4

    @property
    def topic(self) -> str:
        """Where it lies: the name says all that makes one workload differ from another."""
        return f"bench-read-{self.partitions}p-{self.records}x{self.value_bytes}-{self.codec}"


def payload_lines(value_bytes: int, seed: int = 1) -> list[str]:
    """About 5 MB of lines of exactly `value_bytes`: one JSON object, or an array of many.

    Kafka's producer picks among them at random. They are many, so that a line seldom comes twice
    within what one batch holds.
    """
    source = random.Random(seed)
    return [_line(source, value_bytes) for _ in range(_PAYLOAD_BYTES // value_bytes)]


def _line(source: random.Random, value_bytes: int) -> str:
    if value_bytes < 2 * SMALL_BYTES:
        return _event(source, value_bytes)
    count = (value_bytes - 1) // (SMALL_BYTES + 1)
    last_bytes = value_bytes - 1 - (count - 1) * (SMALL_BYTES + 1) - 1
    sizes = [SMALL_BYTES] * (count - 1) + [last_bytes]
    return f"[{','.join(_event(source, size) for size in sizes)}]"


def _event(source: random.Random, size_bytes: int) -> str:
    head = (
        f'{{"id":"{source.getrandbits(40):010x}","user":{source.randrange(100_000)},'
        f'"page":"{source.choice(_PAGES)}","ms":{source.randrange(10_000)},"trace":"'
    )
    digits = size_bytes - len(head) - 2
    return f'{head}{source.getrandbits(4 * digits):0{digits}x}"}}'


class Topics:
    """Makes the topics of workloads, and deletes those it made unless they are to be kept."""

    def __init__(self, tools: KafkaTools, cluster: KafkaCluster, *, keep: bool) -> None:
        self._tools = tools
        self._cluster = cluster
        self._keep = keep
        self._made: list[str] = []

    def make(self, workload: Workload) -> None:
        """Create and fill the workload's topic; one that is there with all its records is used."""
        existing = self._cluster.describe({workload.topic}).topics.get(workload.topic)
        if existing is not None and not existing.error_code:
            if sum(self._counts(workload)) == workload.records:
                return
            self._delete(workload.topic)
        self._tools.create_topic(workload.topic, workload.partitions)
        self._made.append(workload.topic)
        self._counts(workload)  # answers once every partition has its leader
        self._fill(workload)
        counts = self._counts(workload)
        if sum(counts) != workload.records:
            raise RuntimeError(f"{workload.topic} holds {sum(counts)} records after producing")
        if workload.is_wide and min(counts) < max(counts):
            print(f"note: {workload.topic} holds {min(counts)} to {max(counts)} records each")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for topic in () if self._keep else self._made:
            self._delete(topic)

    def _fill(self, workload: Workload) -> None:
        properties = {}
        if workload.is_wide:
            # The default one stays with a partition for a whole batch: too coarse here.
            package = "org.apache.kafka.clients.producer"
            properties["partitioner.class"] = f"{package}.RoundRobinPartitioner"
            # A batch for every record or two keeps the broker busy until the producer's
            # delivery.timeout.ms gives records up (seen: 111 of 100,000).
            properties["linger.ms"] = "2000"
        self._tools.produce_perf(
            workload.topic,
            workload.records,
            workload.value_bytes,
            compression=workload.codec,
            properties=properties,
            payload_lines=payload_lines(workload.value_bytes),
        )

    def _counts(self, workload: Workload) -> list[int]:
        partitions = {TopicPartition(workload.topic, n) for n in range(workload.partitions)}
        return list(self._cluster.get_latest_leader_offsets(partitions).values())

    def _delete(self, topic: str) -> None:
        self._tools.run_tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self._tools.bootstrap_servers),
            *("--delete", "--topic", topic),
        )


def plan(
    records: int, codecs: Sequence[str], partitions: int, sizes: Sequence[str]
) -> Iterator[Workload]:
    """The workloads of one run, in the order of the tables.

    Args:
        records: of 100 B, in each codec; of 10 kB there are a fortieth.
        codecs: of the 100 B values; 10 kB values come plain and in zstd, where that is among them.
        partitions: of the workload that has many, of 100 records each.
        sizes: some of `small`, `large`, `wide`.
    """
    if "small" in sizes:
        for codec in codecs:
            yield Workload(records, SMALL_BYTES, codec)
    if "large" in sizes:
        for codec in ("none", "zstd"):
            if codec in codecs:
                yield Workload(records // 40, LARGE_BYTES, codec)
    if "wide" in sizes:
        yield Workload(100 * partitions, SMALL_BYTES, "none", partitions)
