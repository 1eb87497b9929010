"""Reads Kafka's message definitions and joins those of two releases into one set of facts.

The newest release says how messages look. The oldest broker line that is supported adds what was
dropped since: lower versions, and the fields that only those versions had. A version that its
release calls unstable does not count. Descriptions are not read at all: they are Kafka's text,
and this project copies facts alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_NO_LIMIT = 0x7FFF

Raw = dict[str, Any]


@dataclass(frozen=True)
class StructFact:
    """A structure, by Kafka's name; `is_common` if several fields may have it as their type."""

    name: str
    fields: tuple[FieldFact, ...]
    is_common: bool


@dataclass(frozen=True)
class FieldFact:
    """A field of a message or structure, by Kafka's names."""

    name: str
    kind: str | StructFact
    is_array: bool
    versions: str
    nullable: str | None
    tag: int | None
    default: Any
    has_default: bool
    ignorable: bool


@dataclass(frozen=True)
class MessageFact:
    """A request, a response, or data that travels in a bytes field (`role`)."""

    name: str
    role: str
    api_key: int | None
    versions: tuple[int, int]
    flexible_from: int | None
    fields: tuple[FieldFact, ...]


# Data that clients put into bytes fields: what a member of a classic group says and is told.
_DATA = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}


def read_messages(newest: Path, oldest: Path) -> list[MessageFact]:
    """Every message that a client of a broker may meet."""
    new, old = _read_jar(newest), _read_jar(oldest)
    met = {raw["apiKey"] for raw in new if "broker" in raw.get("listeners", ())}
    before = {_identity(raw): raw for raw in old}
    return [
        _join(raw, before.get(_identity(raw)))
        for raw in new
        if raw.get("apiKey") in met or raw["name"] in _DATA
    ]


def _identity(raw: Raw) -> tuple[Any, str]:
    # Names change between releases (ListClientMetricsResources is now ListConfigResources).
    return raw.get("apiKey", raw["name"]), raw["type"]


def _read_jar(path: Path) -> list[Raw]:
    with ZipFile(path) as jar:
        names = [name for name in jar.namelist() if re.match(r"common/message/\w+\.json$", name)]
        raws = [_read_json(jar.read(name).decode()) for name in sorted(names)]
    unstable = {raw["apiKey"] for raw in raws if raw.get("latestVersionUnstable")}
    for raw in raws:
        raw["range"] = _stable_range(raw, is_unstable=raw.get("apiKey") in unstable)
    return [raw for raw in raws if raw["range"] is not None]


def _read_json(text: str) -> Raw:
    raw: Raw = json.loads(_STRING_OR_COMMENT.sub(lambda found: found[1] or "", text))
    return raw


def _stable_range(raw: Raw, *, is_unstable: bool) -> tuple[int, int] | None:
    if raw["validVersions"] == "none":
        return None
    start, end = _bounds(raw["validVersions"])
    end -= is_unstable
    return (start, end) if start <= end else None


def _bounds(versions: str) -> tuple[int, int]:
    """Both ends, included, of versions written as `3`, `0-8` or `9+`."""
    if versions.endswith("+"):
        return int(versions[:-1]), _NO_LIMIT
    start, _, end = versions.partition("-")
    return int(start), int(end or start)


def _join(new: Raw, old: Raw | None) -> MessageFact:
    start, end = new["range"]
    if old is not None and old["range"] is not None:
        dropped = range(old["range"][0], start)
        new = _with_dropped_fields(new, old, dropped)
        start = min(start, old["range"][0])
    flexible = new["flexibleVersions"]
    common = {raw["name"]: raw for raw in new.get("commonStructs", ())}
    return MessageFact(
        name=new["name"],
        role=new["type"],
        api_key=new.get("apiKey"),
        versions=(start, end),
        flexible_from=None if flexible == "none" else _bounds(flexible)[0],
        fields=_read_fields(new["fields"], common, range(start, end + 1)),
    )


def _with_dropped_fields(new: Raw, old: Raw, dropped: range) -> Raw:
    """`new`, with the fields of `old` that only `dropped` versions had, where they stood."""
    fields: list[Raw] = []
    for raw in new["fields"]:
        was = next((field for field in old["fields"] if field["name"] == raw["name"]), {})
        deep = "fields" in raw and "fields" in was
        fields.append(_with_dropped_fields(raw, was, dropped) if deep else raw)
    names = [field["name"] for field in fields]
    for pos, raw in enumerate(old["fields"]):
        if raw["name"] not in names and _bounds(raw["versions"])[1] in dropped:
            earlier = [field["name"] for field in old["fields"][:pos]]
            at = 1 + max((names.index(name) for name in earlier if name in names), default=-1)
            fields.insert(at, raw)
            names.insert(at, raw["name"])
    return {**new, "fields": fields}


def _read_fields(raws: list[Raw], common: dict[str, Raw], valid: range) -> tuple[FieldFact, ...]:
    facts = (_read_field(raw, common, valid) for raw in raws)
    return tuple(fact for fact in facts if _meets(fact.versions, valid))


def _meets(versions: str, valid: range) -> bool:
    start, end = _bounds(versions)
    return start <= valid[-1] and end >= valid[0]


def _read_field(raw: Raw, common: dict[str, Raw], valid: range) -> FieldFact:
    kind = raw["type"].removeprefix("[]")
    is_array = kind != raw["type"]
    nullable = raw.get("nullableVersions")
    tagged = raw.get("taggedVersions")
    if tagged not in {None, raw["versions"]}:
        raise ValueError(f"{raw['name']} is tagged in {tagged} but exists in {raw['versions']}")
    struct = common.get(kind, raw if "fields" in raw else None)
    default = raw.get("default")
    return FieldFact(
        name=raw["name"],
        kind=_read_struct(kind, struct, common, valid) if struct else kind,
        is_array=is_array,
        versions=raw["versions"],
        nullable=nullable if nullable and _meets(nullable, valid) else None,
        tag=None if tagged is None else int(raw["tag"]),
        default=None if default is None else _read_default(default, kind),
        has_default=default is not None,
        ignorable=bool(raw.get("ignorable", False)),
    )


def _read_struct(name: str, raw: Raw, common: dict[str, Raw], valid: range) -> StructFact:
    return StructFact(name, _read_fields(raw["fields"], common, valid), is_common=name in common)


def _read_default(default: Any, kind: str) -> Any:
    """A default, which a definition may write as JSON or as text, in decimal or hexadecimal."""
    if not isinstance(default, str):
        return default
    if default == "null":
        return None
    if kind == "bool":
        return default == "true"
    if re.fullmatch(r"u?int\d+", kind):
        return int(default, 0)
    if kind in {"string", "bytes"}:
        return default if kind == "string" else default.encode()
    raise ValueError(f"a default {default!r} for type {kind!r}")
