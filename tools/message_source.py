"""Renders the facts about messages as Python source, formatted as `ruff format` would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kafka_definitions import FieldFact, MessageFact, StructFact
from message_words import NOTES, SECRETS, STRUCT_NAMES

_WIDTH = 100
ORIGIN = "Written by tools/generate_messages.py from the definitions in Kafka's client jars."
_PYTHON_TYPES = {
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer",
    "uuid": "bytes",
    "float64": "float",
}


def module_name(api_name: str) -> str:
    """`ListOffsets` -> `list_offsets`."""
    return _snake(api_name)


def api_name(message: MessageFact) -> str:
    """`ListOffsetsRequest` -> `ListOffsets`."""
    return re.sub(r"(Request|Response)$", "", message.name)


def unused_words(messages: list[MessageFact]) -> set[str]:
    """Fields in the hand-kept tables that no message has."""
    paths: set[str] = set()
    for message in messages:
        paths.update(_paths(message.fields, message.name))
    return (NOTES.keys() | SECRETS) - paths


def _paths(fields: tuple[FieldFact, ...], path: str) -> Iterator[str]:
    for fact in fields:
        yield f"{path}.{fact.name}"
        if isinstance(fact.kind, StructFact):
            yield from _paths(fact.kind.fields, f"{path}.{fact.name}")


def render_module(head: str, messages: list[MessageFact]) -> str:
    """The source of one file: shared structures, then each message."""
    shared: dict[str, list[str]] = {}
    bodies = [_Renderer(message, shared).render() for message in messages]
    body = "\n\n\n".join([*("\n".join(lines) for lines in shared.values()), *bodies])
    names = sorted(
        name
        for name in ("Message", "Request", "Response", "Struct", "Versions", "array", "field")
        if re.search(rf"\b{name}\b[,()]", body)
    )
    imports = [f"from pyspark_kafkaproto.wire.declaration import {', '.join(names)}"]
    if "Buffer" in body:
        imports.insert(0, "from pyspark_kafkaproto.wire.cursor import Buffer")
    import_lines = "\n".join(imports)
    return f'''"""{head}

{ORIGIN}
"""

from __future__ import annotations

{import_lines}


{body}
'''


class _Renderer:
    """Renders one message; structures that several fields share go to `shared`, once per file."""

    def __init__(self, message: MessageFact, shared: dict[str, list[str]]) -> None:
        self._message = message
        self._shared = shared

    def render(self) -> str:
        """The class of the message, with its structures inside."""
        message = self._message
        base = {"request": "Request", "response": "Response", "data": "Message"}[message.role]
        lines = [f"class {message.name}({base}):"]
        if message.api_key is not None:
            lines += [f"    API_KEY = {message.api_key}", f'    API_NAME = "{api_name(message)}"']
        lines += [f"    VERSIONS = Versions{message.versions}"]
        lines += [f"    FLEXIBLE_FROM = {message.flexible_from}"]
        if message.name == "ApiVersionsResponse":
            lines += ["    HAS_HEADER_TAGS = False"]
        body = self._body(message.fields, message.name)
        return "\n".join([*lines, *([""] if body else []), *body])

    def _body(self, fields: tuple[FieldFact, ...], path: str) -> list[str]:
        """Structures first, since the fields name them; indented by one level."""
        structs: dict[str, list[str]] = {}
        lines: list[str] = []
        for fact in fields:
            inner = f"{path}.{fact.name}"
            if isinstance(fact.kind, StructFact):
                self._add_struct(fact, fact.kind, inner, structs)
            lines += self._field(fact, inner)
        nested = [line for struct in structs.values() for line in (*struct, "")]
        return _indented([*nested, *lines])

    def _add_struct(
        self, fact: FieldFact, struct: StructFact, path: str, structs: dict[str, list[str]]
    ) -> None:
        name = _struct_name(fact, struct)
        rendered = [f"class {name}(Struct):", *self._body(struct.fields, path)]
        target = self._shared if struct.is_common else structs
        if target.setdefault(name, rendered) != rendered:
            raise ValueError(f"{path}: another structure is called {name}: see STRUCT_NAMES")

    def _field(self, fact: FieldFact, path: str) -> list[str]:
        if isinstance(fact.kind, StructFact):
            python_type = kind = _struct_name(fact, fact.kind)
        else:
            python_type, kind = _PYTHON_TYPES.get(fact.kind, "int"), f'"{fact.kind}"'
        if fact.is_array:
            python_type = f"tuple[{python_type}, ...]"
        if fact.nullable or (fact.has_default and fact.default is None):
            python_type += " | None"
        start = f"{_snake(fact.name)}: {python_type} = {'array' if fact.is_array else 'field'}("
        note = [f"# {NOTES[path]}"] if path in NOTES else []
        return [*note, *render_call(start, [kind, *_arguments(fact, path)], path.count("."))]


def _arguments(fact: FieldFact, path: str) -> list[str]:
    arguments = [f'"{fact.versions}"']
    if fact.has_default:
        default = "()" if fact.is_array and fact.default == "" else _literal(fact.default)
        arguments.append(f"default={default}")
    if fact.nullable:
        arguments.append(f'nullable="{fact.nullable}"')
    if fact.tag is not None:
        arguments.append(f"tag={fact.tag}")
    if fact.ignorable:
        arguments.append("ignorable=True")
    if path in SECRETS:
        arguments.append("secret=True")
    return arguments


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def render_call(start: str, arguments: list[str], depth: int, end: str = ")") -> list[str]:
    """One line, or what a formatter makes of a line that is too long at this depth."""
    joined = ", ".join(arguments)
    if 4 * depth + len(start) + len(joined) + len(end) <= _WIDTH:
        return [f"{start}{joined}{end}"]
    if 4 * (depth + 1) + len(joined) <= _WIDTH:
        return [start, f"    {joined}", end]
    return [start, *(f"    {argument}," for argument in arguments), end]


def _struct_name(fact: FieldFact, struct: StructFact) -> str:
    if struct.name in STRUCT_NAMES:
        return STRUCT_NAMES[struct.name]
    return struct.name if struct.is_common else _singular(fact.name)


def _singular(name: str) -> str:
    name = re.sub(r"(?<=.)Data$", "", name)
    name = re.sub(r"ies$", "y", name)
    return re.sub(r"(?<=ch)es$|(?<!s)s$", "", name)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]
