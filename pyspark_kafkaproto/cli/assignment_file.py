"""Assignments of replicas as JSON, in the format of Kafka's own kafka-reassign-partitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark_kafkaproto.cli.files import cannot_read, cannot_write, shown_name
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


Assignment = Mapping[TopicPartition, tuple[int, ...]]


class Assigned(NamedTuple):
    """What a file says: the brokers of each partition, and the folders of some of the replicas."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    folders: dict[Replica, str]


def assignment_text(
    assignment: Mapping[TopicPartition, Sequence[int]], folders: Mapping[Replica, str] | None = None
) -> str:
    """The file's text."""
    partitions = []
    for item, replicas in sorted(assignment.items()):
        entry = {"topic": item.topic, "partition": item.partition, "replicas": list(replicas)}
        paths = [(folders or {}).get(Replica(broker, *item), _ANY) for broker in replicas]
        partitions.append(entry if set(paths) <= {_ANY} else entry | {"log_dirs": paths})
    return json_text({"version": _VERSION, "partitions": partitions})


def read_assignment(name: str, text: str) -> Assigned:
    """What the file called `name` says.

    Raises:
        ConfigError: it is no such file, or names a partition twice.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # the latter of brackets alone
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


def assignment_in(file: Path) -> Assigned:
    """What a file says; `-` is standard input.

    Raises:
        ConfigError: as `read_assignment`, or it cannot be read.
    """
    return read_assignment(shown_name(str(file)), _text_of(file))


def _text_of(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read()
        return file.read_text("utf-8")
    except OSError as error:
        raise cannot_read("FILE", str(file), error) from error
    except ValueError as error:
        raise ConfigError("FILE", shown_name(str(file)), f"it is no UTF-8: {_SHAPE}") from error


def keep_way_back(file: Path, before: Assigned) -> None:
    """Write where replicas are before a move, unless that is kept there already.

    A move that is begun again finds less to move, and metadata has forgotten the order of what is
    on its way: the first file knows more.

    Raises:
        ConfigError: the file is there, and is about something else; or it cannot be written.
        ClickException: the disk is full.
    """
    try:
        # A device, or a pipe such as that of bash's >(…), keeps nothing, and may have no end.
        found = file.read_text("utf-8") if file.is_file() else ""
        if not found.strip():
            file.write_text(f"{assignment_text(*before)}\n", "utf-8")
            return
    except OSError as error:
        raise cannot_write("--rollback", file, error) from error
    except ValueError:  # it is no text
        found = "-"
    text = "it is there, and leads elsewhere: give a file that is not there yet"
    try:
        kept = read_assignment(str(file), found)
    except ConfigError:
        raise ConfigError("--rollback", str(file), text) from None
    if any(
        set(kept.replicas.get(item, ())) != set(replicas)
        for item, replicas in before.replicas.items()
    ) or any(kept.folders.get(item) != path for item, path in before.folders.items()):
        raise ConfigError("--rollback", str(file), text)


def _entries(name: str, found: Any) -> Iterator[Any]:
    match {"version": _VERSION} | found if isinstance(found, dict) else found:
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
