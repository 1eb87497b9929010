"""Messages as Kafka's own JSON: what its *JsonConverter classes write and read.

Field names are Kafka's, from the definitions in its jars; bytes are Base64, ids Base64 for URLs.
Tagged fields are there unless they hold their default,
unknown ones never.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import Any, NamedTuple

from pyspark_kafkaproto.wire.declaration import Field, Message, Struct


class Name(NamedTuple):
    """What Kafka calls a field, and the fields of the structure in it by our names."""

    json: str
    inner: dict[str, Name]


def names_of(cls: type[Struct], facts: tuple[Any, ...]) -> dict[str, Name]:
    """By our names what Kafka calls the fields that `facts` (kafka_definitions) describe."""
    return {
        name: Name(
            fact.name[0].lower() + fact.name[1:],
            names_of(declared.kind, fact.kind.fields) if _is_struct(declared) else {},
        )
        for (name, declared), fact in zip(cls.FIELDS.items(), facts, strict=True)
    }


def _is_struct(declared: Field) -> bool:
    return not isinstance(declared.kind, str)


def to_json(
    message: Message, names: dict[str, Name], version: int, *, with_records: bool
) -> dict[str, Any]:
    """The message as JSON has it; of records, Kafka writes the size alone but reads the bytes."""
    return _struct(message, names, _Form(version, with_records))


class _Form(NamedTuple):
    version: int
    with_records: bool


def _struct(struct: Struct, names: dict[str, Name], form: _Form) -> dict[str, Any]:
    shown = {}
    for name, declared in type(struct).FIELDS.items():
        value = getattr(struct, name)
        is_left_out = declared.tag is not None and value == declared.default
        if form.version not in declared.versions or is_left_out:
            continue
        key = names[name].json
        if declared.kind == "records" and value is not None and not form.with_records:
            shown[f"{key}SizeInBytes"] = len(value)
        else:
            shown[key] = _value(value, declared, names[name].inner, form)
    return shown


def _value(value: Any, declared: Field, inner: dict[str, Name], form: _Form) -> Any:
    if declared.is_array and value is not None:
        return [_element(item, declared.kind, inner, form) for item in value]
    return _element(value, declared.kind, inner, form)


def _element(value: Any, kind: Any, inner: dict[str, Name], form: _Form) -> Any:
    if value is None:
        return None
    if isinstance(value, Struct):
        return _struct(value, inner, form)
    if kind == "uuid":
        return urlsafe_b64encode(value).decode().rstrip("=")
    if kind in {"bytes", "records"}:
        return b64encode(value).decode()
    return value
