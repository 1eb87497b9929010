"""Texts for people: those of anybody (names, messages of brokers) as a terminal may have them."""

from __future__ import annotations


def printed(text: str) -> str:
    """`text` with what is not printable escaped: control characters move cursors and set titles."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def counted(number: int, name: str) -> str:
    """`1 topic`, `2 topics`."""
    return f"{number} {name}{'' if number == 1 else 's'}"
