"""Files of assignments: those of Kafka's own tool, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_kafkaproto.cli.assignment_file import (
    Assigned,
    assignment_text,
    keep_way_back,
    read_assignment,
)
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica
from pyspark_kafkaproto.errors import ConfigError

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
SWAPPED = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]}


def test_file_is_read_as_it_was_written():
    assignment = {SECOND: (3, 1), FIRST: (1, 2)}
    assert read_assignment("f", assignment_text(assignment)) == (assignment, {})


def test_file_of_kafkas_own_tool_will_do():
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    text = json.dumps({"version": 1, "partitions": [entry]})
    assert read_assignment("f", text) == ({FIRST: (1, 2)}, {})
    text = text.replace('"any", ', '"/a", ')  # what it prints for going back has folders
    assert read_assignment("f", text) == ({FIRST: (1, 2)}, {Replica(1, "orders", 0): "/a"})
    # That tool takes a file without a version for one of the first.
    assert read_assignment("f", json.dumps({"partitions": [entry]})) == ({FIRST: (1, 2)}, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "it is no JSON"),
        pytest.param("[" * 100_000, "it is no JSON", id="brackets alone"),
        ("[]", "expected"),
        ('{"version": 2, "partitions": []}', "version 2"),
        ('{"version": "1", "partitions": []}', "expected"),
        ('{"version": 1}', "expected"),
        ('{"version": 1, "partitions": [3]}', "3 is no partition"),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": "0", "replicas": [1]}]}', "no"),
        (
            '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}',
            "ids",
        ),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "ids"),
        (json.dumps(SWAPPED).replace("2, 1]", '2, 1], "log_dirs": ["/a"]'), "for each replica"),
        (json.dumps(SWAPPED).replace("2, 1]", '2, 1], "log_dirs": ["/a", 1]'), "for each replica"),
        (json.dumps({"version": 1, "partitions": SWAPPED["partitions"] * 2}), "orders-0 twice"),
    ],
)
def test_file_that_is_none_is_named_with_what_is_wrong(text, why):
    with pytest.raises(ConfigError, match=why):
        read_assignment("moves.json", text)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_way_back_into_a_device_reads_nothing_of_it(monkeypatch, device):
    """It was read to its end, which /dev/zero has not, nor a pipe that nobody else writes to."""
    monkeypatch.setattr(Path, "read_text", lambda *_: pytest.fail("it is read"))
    keep_way_back(Path(device), Assigned({FIRST: (1, 2)}, {}))
