"""How the text of one client property becomes a value, or a ConfigError that says what is allowed.

A reader takes the property's full name and its text. What the properties mean is not known here.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, field, fields
from typing import Any, Final

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.secret import Secret

_BLANKS = "".join(map(chr, range(0x21)))  # those of Java's String.trim
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def whole_number(least: int, most: int) -> Callable[[str, str], int]:
    """A reader of whole numbers from `least` to `most`."""

    def read(name: str, text: str) -> int:
        allowed = f"expected a whole number from {least} to {most}"
        # Only what Java reads as an int: Python's int() takes 1_000, too.
        digits = _WHOLE_NUMBER.fullmatch(text.strip())
        if digits is None or not least <= int(digits[0]) <= most:
            raise ConfigError(name, text, allowed)
        return int(digits[0])

    return read


def seconds(least_ms: int = 1, *, is_long: bool = False) -> Callable[[str, str], float]:
    """A reader of milliseconds, as seconds; `is_long` where Kafka has 64 bits for them.

    Who gives more than 32 bits hold means never, and no time-out of the system's is longer.
    """
    read_ms = whole_number(least_ms, INT64_MAX if is_long else INT32_MAX)

    def read(name: str, text: str) -> float:
        return min(read_ms(name, text), INT32_MAX) / 1000

    return read


def seconds_or_never(name: str, text: str) -> float:
    """A reader of milliseconds, of which -1 never pass."""
    if text.strip() == "-1":
        return INT32_MAX / 1000
    try:
        return seconds(0, is_long=True)(name, text)
    except ConfigError as error:
        raise ConfigError(name, text, f"{error.allowed}, or -1") from error


def one_of(*allowed: str) -> Callable[[str, str], str]:
    """A reader of words, all in lower case."""

    def read(name: str, text: str) -> str:
        if text.strip().lower() not in allowed:
            raise ConfigError(name, text, f"expected {' or '.join(allowed)}")
        return text.strip().lower()

    return read


def boolean(name: str, text: str) -> bool:
    """`true` or `false`."""
    return one_of("true", "false")(name, text) == "true"


def text(name: str, given: str) -> str:
    """Any text, without the blanks around it."""
    del name
    return given.strip()


def words(name: str, given: str) -> tuple[str, ...]:
    """A list separated by commas."""
    del name
    return tuple(part for part in (piece.strip() for piece in given.split(",")) if part)


def secret(name: str, given: str) -> Secret:
    """A text that is never shown, without the blanks around it: Java's passwords have none."""
    del name
    return Secret(given.strip(_BLANKS))


def kafka_property(name: str, read: Callable[[str, str], Any], default: Any = None) -> Any:
    """A field of a configuration, read from Kafka's property `name`."""
    return field(default=default, metadata={"name": name, "read": read})


def names_of(config: type) -> dict[str, Field[Any]]:
    """The fields of a configuration that are Kafka's properties, by those names."""
    return {item.metadata["name"]: item for item in fields(config) if "name" in item.metadata}


def read_fields(
    config: type, properties: Mapping[str, object], prefix: str
) -> tuple[dict[str, Any], dict[str, object]]:
    """The values of the properties that `config` has a field for, by field, and all other ones.

    Raises:
        ConfigError: a value that cannot be used; `prefix` stands before the name. Or a name that is
            no text.
    """
    table = names_of(config)
    values: dict[str, Any] = {}
    others: dict[str, object] = {}
    for name, value in properties.items():
        if not isinstance(name, str):
            raise ConfigError("config", [name], "expected names of client properties, as text")
        if name in table:
            item = table[name]
            values[item.name] = item.metadata["read"](prefix + name, _as_text(value))
        else:
            others[name] = value
    return values, others


_warned: set[str] = set()


def warn_once(log: logging.Logger, text: str) -> None:
    """Warn of what was given, once in a process: Spark has sources made anew for each batch."""
    if text not in _warned:
        _warned.add(text)
        log.warning("%s", text)


ALIKE: Final = 0.85
"""So alike that one is the other misspelt, and not a property that other clients have."""


def as_written_here(name: str) -> str:
    """`name` without Spark's prefix, where other clients' ways to write it are Kafka's."""
    return name.lower().replace("_", ".").removeprefix("kafka.")


def meant(prefix: str, name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a message about `name`, which nobody knows: one of `known` that it is close to.

    Empty where it is close to none; `cutoff` is that of `difflib.get_close_matches`.
    """
    close = difflib.get_close_matches(as_written_here(name), list(known), n=1, cutoff=cutoff)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


def _as_text(value: object) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)
