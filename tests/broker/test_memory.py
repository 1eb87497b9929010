"""What a read holds at once: an answer and what is decoded of it, however much there is to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.spark.writing import produce_batches

pytestmark = pytest.mark.broker

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
# fetch.max.bytes
ANSWER_BYTES = 50 * MIB


def peak_of_reading(broker, topic):
    """What a new process says of reading the topic."""
    words = ["-m", "tests.broker.peak_of_reading", broker.bootstrap_servers, topic]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_large_values_one_after_the_other(broker, new_topic):
    """Each more than an answer is asked to hold of a partition."""
    size_bytes, count = 20 * MIB, 12  # a small broker takes in no more at once
    topic = new_topic(configs={"max.message.bytes": str(2 * size_bytes)})
    for number in range(count):
        value = bytes([65 + number]) * size_bytes
        produce_batches(broker.bootstrap_servers, topic, {0: encode_batch([NewRecord(value)])})
    found = peak_of_reading(broker, topic)
    assert (found["rows"], found["values_bytes"]) == (count, count * size_bytes)
    assert found["grown_bytes"] < 5 * size_bytes


def test_many_full_partitions_at_once(broker, new_topic):
    topic = new_topic(100)
    batch = encode_batch([NewRecord(b"v" * 10_000, b"k")] * 90)
    for _ in range(4):
        for first in range(0, 100, 25):
            numbers = range(first, first + 25)
            produce_batches(broker.bootstrap_servers, topic, dict.fromkeys(numbers, batch))
    found = peak_of_reading(broker, topic)
    assert (found["rows"], found["values_bytes"]) == (36_000, 36_000 * 10_000)
    assert found["grown_bytes"] < 2 * ANSWER_BYTES
