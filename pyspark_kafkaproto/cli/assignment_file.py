"""Assignments of replicas as JSON, in the format of Kafka's own kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark_kafkaproto.cli.output import json_text
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.given import checked_brokers
from pyspark_kafkaproto.errors import ConfigError

_VERSION = 1
_ANY = "any"
_SHAPE = (
    'expected {"version": 1, "partitions": '
    '[{"topic": "orders", "partition": 0, "replicas": [1, 2]}, …]}'
)


def assignment_text(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    """The file's text."""
    partitions = [
        {"topic": item.topic, "partition": item.partition, "replicas": list(replicas)}
        for item, replicas in sorted(assignment.items())
    ]
    return json_text({"version": _VERSION, "partitions": partitions})


def read_assignment(name: str, text: str) -> dict[TopicPartition, tuple[int, ...]]:
    """What the file called `name` says.

    Raises:
        ConfigError: it is no such file, names a partition twice, or a folder for a replica.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError("FILE", name, f"it is no JSON ({error}): {_SHAPE}") from None
    assignment: dict[TopicPartition, tuple[int, ...]] = {}
    for entry in _entries(name, found):
        partition, replicas = _partition(name, entry)
        if partition in assignment:
            raise ConfigError("FILE", name, f"it has {partition} twice")
        assignment[partition] = replicas
    if not assignment:
        raise ConfigError("FILE", name, "it names no partition")
    return assignment


def _entries(name: str, found: Any) -> Iterator[Any]:
    match found:
        case {"version": int(version), "partitions": list(entries)}:
            if version != _VERSION:
                raise ConfigError("FILE", name, f"it has version {version}: expected {_VERSION}")
            yield from entries
        case _:
            raise ConfigError("FILE", name, _SHAPE)


def _partition(name: str, entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    match entry:
        case {"topic": str(topic), "partition": int(number), "replicas": list(replicas)}:
            if any(folder != _ANY for folder in _folders(entry)):
                text = f"{topic}-{number} names folders (log_dirs): {_ANY!r} alone is possible here"
                raise ConfigError("FILE", name, text)
            partition = TopicPartition(topic, number)
            return partition, checked_brokers(f"replicas of {partition}", replicas)
    raise ConfigError("FILE", name, f"{json.dumps(entry)[:80]} is no partition: {_SHAPE}")


def _folders(entry: Mapping[str, Any]) -> list[Any]:
    folders = entry.get("log_dirs", [])
    return folders if isinstance(folders, list) else [folders]
