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

    Raises:
        ConfigError: it is a text.
    """
    if isinstance(values, str):
        raise ConfigError(option, values, f"expected a set of {one}s, not one {one}")
