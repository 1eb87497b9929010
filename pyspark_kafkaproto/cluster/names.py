"""Names as callers give them, before anything is asked with them."""

from __future__ import annotations

from collections.abc import Collection

from pyspark_kafkaproto.errors import ConfigError


def check_set(option: str, values: Collection[str], one: str = "name") -> None:
    """Refuse one text where a set of them is meant: it is a collection too, of its letters.

    Raises:
        ConfigError: it is a text.
    """
    if isinstance(values, str):
        raise ConfigError(option, values, f"expected a set of {one}s, not one {one}")
