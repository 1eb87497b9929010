"""Clients that work while brokers fail: one of them, in a process of its own.

    python -m tests.fault.working ROLE NAME SERVERS FOLDER SEED

It works until FOLDER/stop is there, or it is ended. What it did goes, a JSON list a line, to
FOLDER/ROLE-NAME.jsonl:

    writer   ["acked", incarnation, partition, records] of the topic `in`, to partitions that
             FOLDER/partitions counts; a value is `incarnation:partition:number`
    copier   copies `in` to `out` in transactions, each row as `partition:offset`
    reader   ["rows", partition, first offset, offset after the last]
    sharer   the same, of a share group
    all      ["error", text]: what was met, and gone on from
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
import uuid
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

from pyspark_kafkaproto import Consumer, Producer, ProducerRecord, ShareConsumer
from pyspark_kafkaproto.errors import KafkaProtoError

_REST_S = 0.3


class Work:
    """What every role has."""

    def __init__(self, role: str, name: str, servers: str, folder: Path, seed: str) -> None:
        self.name, self.folder = name, folder
        self.chance = random.Random(f"{seed} {role} {name}")
        self._servers = servers
        self._log = (folder / f"{role}-{name}.jsonl").open("a", buffering=1)

    def config(self, **properties: object) -> dict[str, object]:
        """Where the brokers are, how long to wait for them, and more; `_` for a dot."""
        given = {key.replace("_", "."): value for key, value in properties.items()}
        waits_ms = self.chance.choice([2000, 5000, 30_000])
        return {"bootstrap.servers": self._servers, "request.timeout.ms": waits_ms} | given

    def member(self, group: str) -> dict[str, object]:
        """Of a plain group whose members differ in what they can."""
        protocols = [
            {"group.protocol": "consumer"},
            {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
        ]
        few = {"max.partition.fetch.bytes": 1000} if self.chance.random() < 0.3 else {}
        own = self.config(group_id=group, auto_offset_reset="earliest", enable_auto_commit="false")
        return own | self.chance.choice(protocols) | few

    def say(self, *what: object) -> None:
        self._log.write(json.dumps(what) + "\n")

    def say_rows(self, batch: object) -> None:
        """Those of one partition, without those that lie between."""
        (partition, *_), offsets = (batch.column(n).to_pylist() for n in ("partition", "offset"))
        ends = [n for n, (one, after) in enumerate(pairwise(offsets), 1) if after != one + 1]
        for begin, end in pairwise([0, *ends, len(offsets)]):
            self.say("rows", partition, offsets[begin], offsets[end - 1] + 1)

    @property
    def goes_on(self) -> bool:
        return not (self.folder / "stop").exists()

    def polls(self, consumer: object) -> object:
        """Batches, until it is time for the next client; None where none came."""
        for _ in range(self.chance.randrange(5, 300)):
            if not self.goes_on:
                return
            try:
                yield consumer.poll(1)
            except KafkaProtoError as error:
                self.say("error", str(error))
                time.sleep(_REST_S)


def write(work: Work) -> None:
    incarnation, sent = uuid.uuid4().hex, Counter()
    codec = work.chance.choice(["none", "gzip", "snappy", "lz4", "zstd"])
    size = work.chance.choice([500, 2000, 16_384])
    config = work.config(compression_type=codec, batch_size=size, linger_ms=5)
    with Producer(config, topic="in") as producer:
        for _ in range(work.chance.randrange(5, 200)):
            partitions = int((work.folder / "partitions").read_text())
            rows = []
            for _ in range(work.chance.randrange(1, 200)):
                partition = work.chance.randrange(partitions)
                value = f"{incarnation}:{partition}:{sent[partition]}"
                rows.append(ProducerRecord(value, partition=partition))
                sent[partition] += 1
            producer.send(rows)
            if work.chance.random() < 0.3:
                producer.flush()
                say_acked(work, incarnation, sent)
            if not work.goes_on:
                break
            time.sleep(_REST_S * work.chance.random())
        producer.flush()
    say_acked(work, incarnation, sent)


def say_acked(work: Work, incarnation: str, sent: Counter[int]) -> None:
    for partition, records in sent.items():
        work.say("acked", incarnation, partition, records)


def copy(work: Work) -> None:
    begun: dict[object, object] = {}

    def begin(partitions: object) -> None:
        begun.update({item: at for item, at in reader.committable.items() if item in partitions})

    ids = work.config(transactional_id=work.name, transaction_timeout_ms=20_000)
    member = work.member("copies") | {"isolation.level": "read_committed"}
    with (
        Consumer(member, {"in"}, columns=["partition", "offset"], on_assign=begin) as reader,
        Producer(ids, topic="out") as producer,
    ):
        for batch in work.polls(reader):
            if batch is None:
                continue
            offsets = reader.committable
            try:
                producer.begin_transaction()
                columns = (batch.column(name).to_pylist() for name in ("partition", "offset"))
                producer.send(
                    [
                        ProducerRecord(f"{n}:{at}", partition=n)
                        for n, at in zip(*columns, strict=True)
                    ]
                )
                producer.send_offsets_to_transaction(offsets, "copies", reader.group_member)
                if work.chance.random() < 0.95:
                    producer.commit_transaction()
                    begun |= offsets
                    continue
            except KafkaProtoError as error:
                work.say("error", str(error))
            producer.abort_transaction()
            for item in reader.assignment & begun.keys():
                reader.seek(item, begun[item])


def read(work: Work) -> None:
    with Consumer(work.member("readers"), {"in"}, columns=["partition", "offset"]) as consumer:
        for batch in work.polls(consumer):
            if batch is not None:
                work.say_rows(batch)
                some = {item for item in consumer.assignment if work.chance.random() < 0.1}
                consumer.pause(some)
                consumer.resume(some)
            if batch is None or work.chance.random() < 0.5:
                try:
                    consumer.commit(wait=work.chance.random() < 0.5)
                except KafkaProtoError as error:
                    work.say("error", str(error))


def share(work: Work) -> None:
    config = work.config(group_id="sharers")
    with ShareConsumer(config, {"in"}, columns=["partition", "offset"]) as consumer:
        for batch in work.polls(consumer):
            if batch is not None:
                work.say_rows(batch)


ROLES = {"writer": write, "copier": copy, "reader": read, "sharer": share}


def main(role: str, name: str, servers: str, folder: str, seed: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    work = Work(role, name, servers, Path(folder), seed)
    turn = partial(ROLES[role], work)
    while work.goes_on:
        try:
            turn()
        except KafkaProtoError as error:
            work.say("error", str(error))
            time.sleep(_REST_S)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
