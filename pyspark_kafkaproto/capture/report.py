"""Showing messages as text and JSON: a line each, and the field tree with byte ranges.

Secrets never come out: neither their values nor their bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pyspark_kafkaproto.capture.about import about, size_text, text_of
from pyspark_kafkaproto.capture.conversation import Note
from pyspark_kafkaproto.capture.message import REQUEST, Message
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.capture.tree import frame_bytes, tree
from pyspark_kafkaproto.error_codes import error_code
from pyspark_kafkaproto.wire.ids import id_text
from pyspark_kafkaproto.wire.printable import printed
from pyspark_kafkaproto.wire.trace import Node

HIDDEN = "<hidden>"
_DUMP_BYTES_MAX = 256
_TEXT_MAX = 200
_SECOND_NS = 1_000_000_000
_CLOCKS_KEPT = 16


def time_text(time_ns: int) -> str:
    """The time of day in UTC, to the microsecond."""
    seconds, fraction = divmod(time_ns, _SECOND_NS)
    return f"{_clock(seconds % 86400)}.{fraction // 1000:06}"


@lru_cache(_CLOCKS_KEPT)
def _clock(of_day: int) -> str:
    """Many messages share a second."""
    return f"{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"


def _iso_time(time_ns: int) -> str:
    seconds, fraction = divmod(time_ns, _SECOND_NS)
    try:
        shown = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, ValueError, OSError):  # a damaged capture has any time
        return f"{seconds}.{fraction:09}"
    return f"{shown}.{fraction:09}Z"


def latency_text(latency_ns: int) -> str:
    """Milliseconds, as precise as they are few."""
    latency_ms = latency_ns / 1e6
    return f"{latency_ms:.0f} ms" if latency_ms >= 100 else f"{latency_ms:.2g} ms"


def line(message: Message, found: About | None = None) -> str:
    """One line: time, connection, who to whom, what, how large, how long it took, about what."""
    found = found or about(message)
    peers = message.peers
    arrow = "→" if message.kind == REQUEST else "←"
    text = (
        f"{message.number:>6}  {time_text(message.time_ns)}  conn {peers.number}  "
        f"{peers.client} {arrow} {peers.broker}  {message.title:<24}"
    )
    if message.correlation_id is not None:
        text += f"  #{message.correlation_id}"
    text += f"  {size_text(message.size_bytes)}"
    if message.latency_ns is not None:
        text += f"  {latency_text(message.latency_ns)}"
    if what := text_of(found):
        text += f"  {what}"
    if remarks := _remarks(message):
        text += f"  {remarks}"
    return printed(text)


def _remarks(message: Message) -> str:
    remarks = []
    if message.skipped_bytes:
        remarks.append(f"after {message.skipped_bytes} bytes that are no frame")
    if message.problem:
        remarks.append(message.problem)
    elif message.lost_bytes:
        remarks.append(f"{message.lost_bytes} bytes of its end were not captured")
    return f"({'; '.join(remarks)})" if remarks else ""


def note_line(note: Note) -> str:
    """One line for what is no message."""
    of = ""
    if note.peers is not None:
        of = f"connection {note.peers.number}, {note.peers.client} → {note.peers.broker}: "
    return printed(f"{'':>6}  {time_text(note.time_ns)}  {of}{note.text}")


# The field tree


def detail_lines(message: Message) -> Iterator[str]:
    """The field tree, a line per field with its bytes' positions; then what has no fields."""
    root = tree(message)
    frame = frame_bytes(message)
    yield from _node_lines(root, 2)
    for node in root.walk():
        if node.name == "unread" and not node.is_secret and node.value:
            yield from hex_lines(frame, node.start, min(node.stop, node.start + _DUMP_BYTES_MAX))


def _node_lines(node: Node, indent: int) -> Iterator[str]:
    for child in node.children:
        place = f"{child.start}:{child.stop}" if child.start >= 0 else ""
        value = node_text(child)
        problem = f"  ! {child.problem}" if child.problem else ""
        shown = f"{place:<12} {child.name}{': ' + value if value else ''}{problem}"
        yield f"{'':>{indent}}{printed(shown)}"
        yield from _node_lines(child, indent + 2)
    if indent == 2 and node.problem:
        yield f"{'':>{indent}}! {printed(node.problem)}"


def node_text(node: Node) -> str:
    """A field's value for people."""
    value = node.value
    if node.is_secret:
        return HIDDEN
    if value is None:
        return "null" if node.is_null else ""
    if isinstance(value, (bytes, memoryview)):
        return "" if node.children else _content_text(node, value)
    if node.name.endswith("error_code"):
        return f"{value} {error_code(value).name}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _content_text(node: Node, value: bytes | memoryview) -> str:
    if node.kind == "uuid":
        return id_text(bytes(value))
    return _bytes_text(bytes(value[: _TEXT_MAX + 1]), len(value))


def _bytes_text(start: bytes, size: int) -> str:
    text = _printable(start[:_TEXT_MAX])
    shown = json.dumps(text, ensure_ascii=False) if text is not None else start[:64].hex(" ")
    return shown if size <= (_TEXT_MAX if text is not None else 64) else f"{shown} … {size} bytes"


def _printable(data: bytes) -> str | None:
    """The text that bytes are, if they are text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def hex_lines(data: bytes, start: int, stop: int) -> Iterator[str]:
    """Sixteen bytes a line: position, hexadecimal, text."""
    for pos in range(start, stop, 16):
        row = data[pos : min(pos + 16, stop)]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"  {pos:>8}  {row.hex(' '):<47}  {text}"


# JSON


def as_json(message: Message, *, with_fields: bool = False) -> dict[str, Any]:
    """The message for programs; times in nanoseconds since 1970, sizes in bytes."""
    found = about(message)
    shown: dict[str, Any] = {
        "number": message.number,
        "time": _iso_time(message.time_ns),
        "time_ns": message.time_ns,
        "connection": message.peers.number,
        "client": message.peers.client,
        "broker": message.peers.broker,
        "kind": message.kind,
        "api": message.api,
        "api_key": message.api_key,
        "api_version": message.version if message.version >= 0 else None,
        "correlation_id": message.correlation_id,
        "client_id": message.client_id,
        "size_bytes": message.size_bytes,
        "latency_ms": None if message.latency_ns is None else message.latency_ns / 1e6,
        "answers": message.answers,
        "topics": {
            name: [part._asdict() for part in parts] for name, parts in found.topics.items()
        },
        "errors": [
            {"code": code, "name": error_code(code).name, "subject": subject, "message": text}
            for code, subject, text in found.errors
        ],
        "problem": message.problem or None,
        "lost_bytes": message.lost_bytes,
        "skipped_bytes": message.skipped_bytes,
    }
    if with_fields:
        shown["fields"] = [node_as_json(child) for child in tree(message).children]
    return shown


def note_as_json(note: Note) -> dict[str, Any]:
    """A note for programs."""
    peers = note.peers._asdict() if note.peers else None
    return {"note": note.text, "time_ns": note.time_ns, "connection": peers}


def node_as_json(node: Node) -> dict[str, Any]:
    """A field: name, bytes [start, stop) where it has some, value or fields."""
    shown: dict[str, Any] = {"name": node.name}
    if node.start >= 0:
        shown["bytes"] = [node.start, node.stop]
    if node.is_secret:
        return shown | {"hidden": True}
    if node.problem:
        shown["problem"] = node.problem
    if node.children:
        shown["fields"] = [node_as_json(child) for child in node.children]
    elif node.kind or node.value is not None or node.is_null:
        shown["value"] = _json_value(node)
    return shown


def _json_value(node: Node) -> Any:
    """Text where bytes are text, else an object with their hexadecimal digits."""
    value = node.value
    if node.kind == "uuid" and isinstance(value, bytes):
        return id_text(value)
    if isinstance(value, (bytes, memoryview)):
        text = _printable(bytes(value))
        return {"hex": bytes(value).hex()} if text is None else text
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124
        return str(value)  # JSON has no such number
    return value
