"""Readers without Spark, one per process: `python -m reading.clients NAME JOB`, the job as JSON.

Each is timed from making the client to the last record, imports not included, with the settings its
project ships; records are taken in the largest units the client offers and counted, nothing more.
Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

_PATIENCE_S = 30.0
_TAKE = 10_000
NOT_INSTALLED = 3


class Job(NamedTuple):
    """What to read: the first `records` of a topic; `properties` are our own client's."""

    servers: str
    topic: str
    records: int
    properties: dict[str, str]


class Done(NamedTuple):
    """The records that came, and when the last of them did (by time.perf_counter)."""

    records: int
    at: float


Read = Callable[[], Done]


class Tally:
    """Counts records up to the number wanted."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._count = 0
        self._last = time.perf_counter()

    @property
    def missing(self) -> int:
        """How many have not come yet."""
        return self._wanted - self._count

    @property
    def is_complete(self) -> bool:
        """Whether all have come, or more: a poll gives what it has."""
        return self.missing <= 0

    def add(self, count: int) -> None:
        """Count what a poll gave; TimeoutError when nothing has come for long."""
        self._count += count
        now = time.perf_counter()
        if count:
            self._last = now
        elif now - self._last > _PATIENCE_S:
            raise TimeoutError(f"{self._count} of {self._wanted} records in {_PATIENCE_S:g} s")

    def done(self) -> Done:
        """The result."""
        return Done(self._count, self._last)


def ours(job: Job) -> Read:
    """client.read_batches: Arrow record batches of all seven columns."""
    import pyarrow as pa  # noqa: F401 - ours loads it with the first batch

    from reading.ours import Reading

    def read() -> Done:
        with Reading.open(job.properties, job.topic) as reading:
            return Done(reading.count(), time.perf_counter())

    return read


def decoding(job: Job) -> Read:
    """One block of the topic, decoded until as many rows have come: no network."""
    from reading.decoding import Decoding
    from reading.ours import Reading

    with Reading.open(job.properties, job.topic) as reading:
        block = Decoding.of(reading)

    def read() -> Done:
        return Done(block.count(job.records), time.perf_counter())

    return read


def bare_socket(job: Job) -> Read:
    """The same requests over a plain socket, the answers thrown away."""
    from reading import bare_socket as bare
    from reading.ours import Reading

    with Reading.open(job.properties, job.topic) as reading:
        recording = bare.record(reading)

    def read() -> Done:
        if bare.replay(recording) != recording.answer_bytes:
            raise RuntimeError("the answers have another size than those that were recorded")
        return Done(job.records, time.perf_counter())

    return read


def confluent_kafka(job: Job) -> Read:
    """confluent-kafka: Consumer.consume."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    def read() -> Done:
        properties = {
            "bootstrap.servers": job.servers,
            "group.id": f"bench-{uuid.uuid4()}",
            "enable.auto.commit": False,
            # With its defaults it keeps 100,000 messages ready and then asks nothing for a second:
            # that second is what would be measured.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
        }
        with closing(Consumer(properties)) as consumer:
            partitions = consumer.list_topics(job.topic).topics[job.topic].partitions
            consumer.assign([TopicPartition(job.topic, n, OFFSET_BEGINNING) for n in partitions])
            tally = Tally(job.records)
            while not tally.is_complete:
                # It waits for as many as it is asked for: the last ones are fewer.
                asked = min(_TAKE, tally.missing)
                tally.add(len(consumer.consume(asked, timeout=1.0)))
            return tally.done()

    return read


def kafka_python(job: Job) -> Read:
    """kafka-python: KafkaConsumer.poll."""
    from kafka import KafkaConsumer

    def read() -> Done:
        settings = {"group_id": None, "auto_offset_reset": "earliest"}
        with closing(
            KafkaConsumer(job.topic, bootstrap_servers=job.servers, **settings)
        ) as consumer:
            tally = Tally(job.records)
            while not tally.is_complete:
                polled = consumer.poll(timeout_ms=1000, max_records=_TAKE)
                tally.add(sum(map(len, polled.values())))
            return tally.done()

    return read


def aiokafka(job: Job) -> Read:
    """aiokafka: AIOKafkaConsumer.getmany."""
    from aiokafka import AIOKafkaConsumer

    async def consume() -> Done:
        settings = {"group_id": None, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(
            job.topic, bootstrap_servers=job.servers, **settings
        ) as consumer:
            tally = Tally(job.records)
            while not tally.is_complete:
                polled = await consumer.getmany(timeout_ms=1000, max_records=_TAKE)
                tally.add(sum(map(len, polled.values())))
            return tally.done()

    return lambda: asyncio.run(consume())


CLIENTS: dict[str, Callable[[Job], Read]] = {
    "ours": ours,
    "decoding": decoding,
    "bare-socket": bare_socket,
    "confluent-kafka": confluent_kafka,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
# What has to be importable; ours is a failure where it is not.
_MODULES = {"confluent-kafka": "confluent_kafka", "aiokafka": "aiokafka", "kafka-python": "kafka"}


def main(name: str, job: str) -> int:
    if name in _MODULES:
        try:
            importlib.import_module(_MODULES[name])
        except ModuleNotFoundError:
            return NOT_INSTALLED
    read = CLIENTS[name](Job(**json.loads(job)))
    began = time.perf_counter()
    done = read()
    print(json.dumps({"seconds": done.at - began, "records": done.records}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
