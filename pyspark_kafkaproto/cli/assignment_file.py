"""Assignments of replicas as JSON, in the format of Kafka's own kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark_kafkaproto.cli.output import json_text
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica
from pyspark_kafkaproto.cluster.given import checked_brokers
from pyspark_kafkaproto.errors import ConfigError

_VERSION = 1
_ANY = "any"
_SHAPE = (
    'expected {"version": 1, "partitions": '
    '[{"topic": "orders", "partition": 0, "replicas": [1, 2]}, …]}'
)


class Assigned(NamedTuple):
    """What a file says: the brokers of each partition, and the folders of some of the replicas."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    folders: dict[Replica, str]


def assignment_text(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    """The file's text."""
    partitions = [
        {"topic": item.topic, "partition": item.partition, "replicas": list(replicas)}
        for item, replicas in sorted(assignment.items())
    ]
    return json_text({"version": _VERSION, "partitions": partitions})


def read_assignment(name: str, text: str) -> Assigned:
    """What the file called `name` says.

    Raises:
        ConfigError: it is no such file, or names a partition twice.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError("FILE", name, f"it is no JSON ({error}): {_SHAPE}") from None
    assigned = Assigned({}, {})
    for entry in _entries(name, found):
        partition = _partition(name, entry)
        if partition in assigned.replicas:
            raise ConfigError("FILE", name, f"it has {partition} twice")
        replicas = checked_brokers(f"replicas of {partition}", entry["replicas"])
        assigned.replicas[partition] = replicas
        for broker, folder in zip(replicas, _folders(name, entry), strict=True):
            if folder != _ANY:
                assigned.folders[Replica(broker, *partition)] = folder
    return assigned


def _entries(name: str, found: Any) -> Iterator[Any]:
    match found:
        case {"version": int(version), "partitions": list(entries)}:
            if version != _VERSION:
                raise ConfigError("FILE", name, f"it has version {version}: expected {_VERSION}")
            yield from entries
        case _:
            raise ConfigError("FILE", name, _SHAPE)


def _partition(name: str, entry: Any) -> TopicPartition:
    match entry:
        case {"topic": str(topic), "partition": int(number), "replicas": list()}:
            return TopicPartition(topic, number)
    raise ConfigError("FILE", name, f"{json.dumps(entry)[:80]} is no partition: {_SHAPE}")


def _folders(name: str, entry: Any) -> list[str]:
    """The folder of each replica."""
    replicas = entry["replicas"]
    match entry.get("log_dirs", [_ANY] * len(replicas)):
        case list(folders) if len(folders) == len(replicas):
            if all(isinstance(folder, str) for folder in folders):
                return folders
    text = f"log_dirs of {_partition(name, entry)}: expected a path, or {_ANY!r}, for each replica"
    raise ConfigError("FILE", name, text)
