"""Reads a topic to its end and says what that took: rows, bytes of values, the process's peak.

    python -m tests.broker.peak_of_reading SERVERS TOPIC

A process of its own, as the peak of one that did other things before says nothing.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import pyarrow.compute as pc

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import KafkaCluster


def peak_bytes() -> int:
    """The most memory that was ever resident; the parent's is not counted where that is told."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main(servers: str, topic: str) -> None:
    """Print one line of JSON."""
    with KafkaCluster({"bootstrap.servers": servers}) as kafka:
        partitions = kafka.get_partitions({topic})
        leaders = kafka.find_leaders(partitions)
        topic_id = kafka.describe({topic}).topic(topic).topic_id
        ranges = tuple(OffsetRange(*item, None, None) for item in sorted(partitions))
        task = ReadTask(ranges, leaders, {topic: topic_id})
        before, rows, values_bytes = peak_bytes(), 0, 0
        for batch in read_batches(task, kafka.config, ReadSettings(), schema_for(["key", "value"])):
            rows += batch.num_rows
            values_bytes += pc.sum(pc.binary_length(batch["value"])).as_py()
    grown = peak_bytes() - before
    print(json.dumps({"rows": rows, "values_bytes": values_bytes, "grown_bytes": grown}))


if __name__ == "__main__":
    main(*sys.argv[1:])
