"""Records as lines: JSON, the bare value, or a template of one's own."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from pyspark_kafkaproto.cli.moments import show_time
from pyspark_kafkaproto.cli.output import json_text
from pyspark_kafkaproto.client.following import Record
from pyspark_kafkaproto.errors import ConfigError

Render = Callable[[Record], bytes]

FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_NO_TIMESTAMP_MS = -1
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\0": "\0"}


def make_render(text: str) -> Render:
    """The way to render that `--format` names: `json`, `raw`, or a template with {fields}.

    Raises:
        ConfigError: a template without fields, or with one that records do not have.
    """
    if text == "json":
        return as_json
    if text == "raw":
        return as_raw
    return _template(text)


def as_json(record: Record) -> bytes:
    """One line. Bytes that are not UTF-8 are in `key_base64`, `value_base64` instead."""
    shown: dict[str, object] = {
        name: record[name] for name in ("topic", "partition", "offset") if name in record
    }
    shown["timestamp"] = _time(record["timestamp"])
    for name in ("key", "value"):
        _put_text(shown, name, record[name])
    if record.get("headers"):
        shown["headers"] = [_header(item) for item in record["headers"]]
    return json_text(shown).encode("utf-8") + b"\n"


def as_raw(record: Record) -> bytes:
    """The value's bytes and a line break; a null value is an empty line."""
    return (record["value"] or b"") + b"\n"


def _template(text: str) -> Render:
    expected = f"expected json, raw, or a template with {', '.join(f'{{{n}}}' for n in FIELDS)}"
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ConfigError("--format", text, f"{expected} ({error})") from None
    names = [name for _, name, _, _ in parts if name is not None]
    if any(spec or conversion for _, _, spec, conversion in parts):
        raise ConfigError("--format", text, f"{expected}, and neither ! nor : in them")
    if not names or not set(names) <= set(FIELDS):
        raise ConfigError("--format", text, expected)
    # As it was given, whatever its encoding.
    pieces = [(os.fsencode(_unescaped(literal)), name) for literal, name, _, _ in parts]

    def render(record: Record) -> bytes:
        # Bytes stay bytes: a key is written as it came, whatever its encoding.
        filled = (
            part + (b"" if name is None else _bytes(name, record[name])) for part, name in pieces
        )
        return b"".join(filled) + b"\n"

    return render


def _unescaped(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _bytes(name: str, value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if name == "timestamp":
        return (_time(value) or "").encode()
    if name == "headers":
        pairs = (item["key"].encode() + b"=" + (item["value"] or b"") for item in value)
        return b",".join(pairs)
    return str(value).encode("utf-8")


def _header(item: Mapping[str, Any]) -> dict[str, object]:
    shown: dict[str, object] = {"key": item["key"]}
    _put_text(shown, "value", item["value"])
    return shown


def _put_text(shown: dict[str, object], name: str, value: bytes | None) -> None:
    if value is None:
        shown[name] = None
        return
    try:
        shown[name] = value.decode("utf-8")
    except UnicodeDecodeError:
        shown[f"{name}_base64"] = base64.b64encode(value).decode("ascii")


def _time(micros: int) -> str | None:
    """ISO 8601; the number of milliseconds where Python knows no such date.

    None of a record without one, as those are that were written before Kafka 0.10.
    """
    timestamp_ms = micros // 1000
    return None if timestamp_ms == _NO_TIMESTAMP_MS else show_time(timestamp_ms)
