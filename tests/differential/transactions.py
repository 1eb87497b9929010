"""Histories of transactions, written by Java's own producers; what Java's consumer reads of them.

Each is a random walk with a seed: producers that take turns on the partitions, end their
transactions in either way, and begin again with the same id.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.devbroker.jars import class_path
from tests.differential.java_process import JavaProcess, spark_jars

Isolation = Literal["read_committed", "read_uncommitted"]

_LIBRARIES = ("slf4j-api", "lz4-java", "snappy-java", "zstd-jni")
_PRODUCERS = 4
_MOST_RECORDS = 12


class Seen(NamedTuple):
    """A record as Java's consumer gave it."""

    offset: int
    value: bytes


class JavaTransactions:
    """Java's producers and consumers on one broker; see Transactions.java."""

    def __init__(self, process: JavaProcess) -> None:
        self._process = process

    def do(self, *words: object) -> str:
        """One command; AssertionError with Java's own text where it fails."""
        answer = self._process.ask(" ".join(map(str, words)).encode())
        text = answer[1:].decode()
        assert answer[0] == 0, f"{words}: {text}"
        return text

    def read(self, isolation: Isolation, topic: str, partition: int) -> list[Seen]:
        """All records of a partition up to where `isolation` ends at this moment."""
        lines = self.do("read", isolation, topic, partition).splitlines()
        parts = (line.split(" ", 1) for line in lines)
        return [Seen(int(offset), value.encode()) for offset, value in parts]

    def write_history(self, topic: str, partitions: int, steps: int, seed: int) -> set[str]:
        """Walk `steps` steps; gives the producers whose transaction is open at the end."""
        choose = random.Random(seed)
        open_: set[str] = set()
        for step in range(steps):
            producer = f"{topic}-producer-{choose.randrange(_PRODUCERS)}"
            if producer not in open_:
                self.do("begin", producer)
                open_.add(producer)
            elif choose.random() < 1 / 3:
                self.do(choose.choice(("commit", "abort")), producer)
                open_.remove(producer)
                continue
            count = choose.randint(1, _MOST_RECORDS)
            partition = choose.randrange(partitions)
            self.do("send", producer, topic, partition, count, f"step-{step}")
        return open_


@contextmanager
def java_transactions(broker: KafkaTools) -> Iterator[JavaTransactions]:
    """The process, with the broker's own release of Kafka's clients."""
    folders = [Path(item).parent for item in class_path(broker.version).split(":") if "*" in item]
    (clients,) = (jar for folder in folders for jar in folder.glob("kafka-clients-[0-9]*.jar"))
    jars = [str(clients), *spark_jars(*_LIBRARIES)]
    with JavaProcess("Transactions.java", jars, [broker.bootstrap_servers]) as process:
        yield JavaTransactions(process)
