"""Names as callers give them, before anything is asked with them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from pyspark_kafkaproto.errors import ConfigError

TOPIC_NAMES: Final = "a topic's name has 1 to 249 letters, digits, dots, underscores and hyphens"
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: object) -> bool:
    """Whether a topic can be called so."""
    return isinstance(name, str) and _TOPIC_NAME.fullmatch(name) is not None


def check_set(option: str, values: Collection[str], one: str = "name") -> None:
    """Refuse one text where a set of them is meant: it is a collection too, of its letters.

    What can be gone through only once, a generator, is none: it would look empty the second time.

    Raises:
        ConfigError: it is a text, or no set at all.
    """
    if isinstance(values, str) or not isinstance(values, Collection):
        raise ConfigError(option, values, f"expected a set of {one}s, not one {one}")


def topic_pattern(option: str, text: str) -> re.Pattern[str]:
    """A regular expression over the names of topics, in Python's syntax.

    Raises:
        ConfigError: it is none, or Java would read it as another one.
    """
    if not text.strip():
        raise ConfigError(option, text, "expected a regular expression, not nothing")
    if _has_set_in_set(text):
        why = "a set in a set, […[…]] or […&&…], is Java's alone: write one set, or \\[ and \\&"
        raise ConfigError(option, text, why)
    try:
        return re.compile(text.strip())
    except re.error as error:
        why = f"expected a regular expression of Python's ({error})"
        raise ConfigError(option, text, why) from None


def _has_set_in_set(pattern: str) -> bool:
    """Whether a set holds another, or is an intersection: Java reads these otherwise."""
    begin: int | None = None  # of the set that is open
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif begin is None:
            begin = position if character == "[" else None
        elif character == "[" or pattern.startswith("&&", position):
            return True
        elif character == "]" and pattern[begin + 1 : position] not in {"", "^"}:
            begin = None
        position += 1
    return False
