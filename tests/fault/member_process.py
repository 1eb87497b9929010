"""A member of a group in a process of its own: commits every batch, and says so line by line.

    python -m tests.fault.member_process SERVERS GROUP TOPIC COMMITS

After COMMITS committed batches it reads one more, commits nothing, and holds still, its membership
kept alive by its own thread: so it is met by SIGKILL. With COMMITS 0 it goes on.
Each line is JSON: [partition, first offset, offset after the last, whether it was committed].
"""

from __future__ import annotations

import json
import signal
import sys

from pyspark_kafkaproto import Consumer

SESSION_MS = 15_000


def main(servers: str, group: str, topic: str, commits: int) -> None:
    config = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 200,
        "max.partition.fetch.bytes": 1,  # a record batch at a time
        "fetch.max.bytes": 1,
    }
    with Consumer(config, {topic}, columns=["partition", "offset"]) as consumer:
        say({"ready": True})
        for number, batch in enumerate(consumer, 1):
            offsets = batch.column("offset")
            read = [
                batch.column("partition")[0].as_py(),
                offsets[0].as_py(),
                offsets[-1].as_py() + 1,
            ]
            is_last = 0 < commits < number
            if not is_last:
                consumer.commit()
            say([*read, not is_last])
            if is_last:
                signal.pause()


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
