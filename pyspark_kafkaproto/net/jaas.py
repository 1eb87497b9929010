"""`sasl.jaas.config`: one login module, its flag and its options, as Java's tokenizer reads them.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";

No error shows the text: it holds passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.secret import HIDDEN, Secret

_FLAGS = ("required", "requisite", "sufficient", "optional")
_FORM = 'expected <login module> required <option>="<value>" …;'

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<word>[^\s"'=;]+)
    | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A Java class name and the options that stand behind it."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(name: str, given: Secret) -> LoginModule:
    """Read the property called `name`.

    Raises:
        ConfigError: it has not the form; says what was expected, and not what it is.
    """
    tokens = list(_tokens(name, given.reveal()))
    if len(tokens) < 3 or tokens[-1] != ("mark", ";"):
        raise _wrong(name, f"it does not end with a semicolon: {_FORM}")
    (_, module), (_, flag), *rest = tokens[:-1]
    if flag.lower() not in _FLAGS:
        raise _wrong(name, f"after {module} there must be one of {', '.join(_FLAGS)}: {_FORM}")
    if ("mark", ";") in rest:
        raise _wrong(name, "it holds several login modules, where one is allowed")
    return LoginModule(module, dict(_pairs(name, rest)))


def write_jaas(module: LoginModule) -> Secret:
    """What `parse_jaas` reads as `module`; the text holds what its options hold."""
    pairs = (f" {option}={_quoted(value)}" for option, value in module.options.items())
    return Secret(f"{module.name} required{''.join(pairs)};")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")  # where Java ends a quote
    return f'"{escaped}"'


def _pairs(name: str, tokens: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for pos in range(0, len(tokens), 3):
        triple = tokens[pos : pos + 3]
        kinds = [kind for kind, _ in triple]
        if len(triple) < 3 or kinds[0] != "word" or triple[1][1] != "=" or kinds[2] == "mark":
            # A value may hold a quote that was not escaped: what stands here can be a password.
            found = f"after {pos // 3} option(s)"
            raise _wrong(name, f'expected <option>="<value>" {found}; \\" stands for a quote')
        yield triple[0][1], triple[2][1]


def _tokens(name: str, text: str) -> Iterator[tuple[str, str]]:
    pos = 0
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None:
            raise _wrong(name, f"a quote is not closed: {_FORM}")
        pos = match.end()
        if match.lastgroup == "quoted":
            yield "quoted", _ESCAPE.sub(_unescaped, match["quoted"][1:-1])
        elif match.lastgroup:
            yield match.lastgroup, match[match.lastgroup]


def _unescaped(match: re.Match[str]) -> str:
    said = match[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPED.get(said, said)


def _wrong(name: str, allowed: str) -> ConfigError:
    return ConfigError(name, HIDDEN, allowed)
