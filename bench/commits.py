"""How many commits a second, and how many rows are read again after a kill, per commit mode.

    python bench/commits.py [--seconds 3]

A member in a process of its own reads a topic batch by batch and commits: `sync` waits for each
commit, `async` does not, `auto` leaves it to auto.commit.interval.ms (1 s here). It is met by
SIGKILL while it reads; the rows it had been given beyond what the group has committed are read
again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import uuid

from pyspark_kafkaproto import Consumer, KafkaCluster
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.devbroker import DevBroker, KafkaTools

MODES = ("sync", "async", "auto")
RECORDS = 300_000
AUTO_MS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        run(given, seconds)
        return
    with DevBroker() as broker:
        run(broker.bootstrap_servers, seconds)


def run(servers: str, seconds: float) -> None:
    """Each mode in turn, on one topic."""
    topic = f"commits-{uuid.uuid4().hex[:8]}"
    with KafkaCluster({"bootstrap.servers": servers}) as kafka:
        kafka.create_topics([NewTopic(topic, 1, 1)])
        tools = KafkaTools(servers)
        # Small batches: many polls, so many commits.
        tools.produce_perf(topic, RECORDS, 100, properties={"batch.size": "2000", "linger.ms": "0"})
        print(f"{'mode':6} {'commits/s':>10} {'rows/s':>10} {'read again':>11}", flush=True)
        for mode in MODES:
            print(measured(kafka, servers, topic, mode, seconds), flush=True)
        kafka.delete_topics({topic})


def measured(kafka: KafkaCluster, servers: str, topic: str, mode: str, seconds: float) -> str:
    group = f"{topic}-{mode}"
    command = [sys.executable, __file__, "--as-member", servers, group, topic, mode]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    position, commits, began = 0, 0, 0.0
    try:
        for line in process.stdout:
            position, commits = json.loads(line)
            began = began or time.monotonic()
            if time.monotonic() - began >= seconds:
                break
        spent = time.monotonic() - began
        process.kill()
        # What it had said before the kill was there to be worked off, too.
        for line in process.stdout:
            if line.endswith("\n"):
                position, commits = json.loads(line)
    finally:
        process.kill()
        process.wait()
    (committed,) = kafka.get_consumer_offsets(group, kafka.get_partitions({topic})).values() or (0,)
    rate = "-" if mode == "auto" else f"{commits / spent:,.0f}"
    return f"{mode:6} {rate:>10} {position / spent:>10,.0f} {position - committed:>11,}"


def member(servers: str, group: str, topic: str, mode: str) -> None:
    config = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": str(mode == "auto").lower(),
        "auto.commit.interval.ms": AUTO_MS,
        "max.partition.fetch.bytes": 1,
        "fetch.max.bytes": 1,
    }
    done = []
    note = {"on_commit": lambda *said: done.append(said)}
    with Consumer(config, {topic}, columns=["offset"], **note) as consumer:
        for batch in consumer:
            if mode != "auto":
                consumer.commit(wait=mode == "sync")
            if mode == "sync":
                done.append(None)
            print(json.dumps([batch.column("offset")[-1].as_py() + 1, len(done)]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-member"]:
        member(*sys.argv[2:6])
    else:
        main()
