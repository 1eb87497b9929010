"""What tshark said of a capture, against what this package says."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from pyspark_kafkaproto.capture import Message, open_capture, read_messages
from pyspark_kafkaproto.capture.message import REQUEST
from pyspark_kafkaproto.capture.tree import tree

# The highest version of each API whose fields tshark 4.0 reads as they are.
_GROUPS_AND_DATA = {0: 8, 1: 11, 2: 5, 3: 9, 8: 9, 9: 7, 10: 2, 11: 5, 12: 3, 13: 2, 14: 3}
_TSHARK_KNOWS = _GROUPS_AND_DATA | {18: 4, 22: 1}
_TOPICS = {"topics", "topic_data", "responses", "partitions"}
_OFFSETS = {"high_watermark", "fetch_offset", "base_offset", "offset", "committed_offset"}
_PARTITIONS = {"partition", "partition_index", "index"}


def messages_of(path: Path) -> list[Message]:
    with path.open("rb") as stream:
        items = list(read_messages(open_capture(stream, str(path))))
    return [item for item in items if isinstance(item, Message)]


def facts(message: Message) -> dict[str, list[str]]:
    """The values of a message by the names of tshark's fields, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    _collect(tree(message), "", found)
    return found


def _collect(node, above, found):
    for child in node.children:
        name = child.name
        is_element = name.startswith("[")
        if (
            name == "topic"
            or (name == "name" and above in _TOPICS)
            or (is_element and above == "topics" and child.kind == "string")
        ):
            found["kafka.topic_name"].append(child.value)
        elif name in _PARTITIONS:
            found["kafka.partition_id"].append(str(child.value))
        elif name == "partition_indexes":
            found["kafka.partition_id"] += map(str, child.value)
        elif name in _OFFSETS:
            found["kafka.offset"].append(str(child.value))
        elif name == "error_code":
            found["kafka.error"].append(str(child.value))
        elif name in {"key", "value"} and child.kind == "bytes":
            found[f"kafka.message_{name}"].append((child.value or b"").hex())
        if child.kind != "bytes":  # what a group's members say to each other tshark does not read
            _collect(child, above if is_element else name, found)


def check_equal(path: Path, answers: list[dict[str, list[str]]] | None = None) -> int:
    """Every message that tshark decodes is decoded equally; how many were compared in full."""
    if answers is None:
        answers = json.loads(path.with_suffix(".json").read_text())
    ours: dict[tuple[str, bool, str], list[Message]] = defaultdict(list)
    for message in messages_of(path):
        port = message.peers.client.rpartition(":")[2]
        ours[port, message.kind == REQUEST, str(message.correlation_id)].append(message)
    clients = {packet["tcp.srcport"][0] for packet in answers if "kafka.api_version" in packet}
    streams = {
        p["tcp.stream"][0]: p["tcp.srcport"][0] for p in answers if p["tcp.srcport"][0] in clients
    }
    compared = 0
    for packet in answers:
        is_request = packet["tcp.srcport"][0] in clients
        port = streams[packet["tcp.stream"][0]]
        said = [ours[port, is_request, number].pop(0) for number in packet["kafka.correlation_id"]]
        compared += _compare(packet, said, is_request=is_request)
    assert not [left for some in ours.values() for left in some], "tshark has not seen all of ours"
    return compared


def _compare(packet, said, *, is_request) -> bool:
    where = f"packet {packet['frame.number']}"
    assert packet["kafka.len"] == [str(message.size_bytes) for message in said], where
    if "kafka.api_key" in packet:
        assert packet["kafka.api_key"] == [str(message.api_key) for message in said], where
    if is_request:
        assert packet["kafka.api_version"] == [str(message.version) for message in said], where
        assert packet["kafka.client_id"] == [message.client_id for message in said], where
    if any(message.version > _TSHARK_KNOWS.get(message.api_key, -1) for message in said):
        return False
    found: dict[str, list[str]] = defaultdict(list)
    for message in said:
        assert message.body() is not None, f"{where}: {message.problem}"
        for name, values in facts(message).items():
            found[name] += values
    names = ("topic_name", "partition_id", "offset", "error", "message_key", "message_value")
    for name in (f"kafka.{each}" for each in names):
        assert packet.get(name, []) == found[name], (where, name, said[0].title)
    return True
