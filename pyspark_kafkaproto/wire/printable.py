"""Texts from anybody (names, messages of brokers), as a terminal may be given them."""

from __future__ import annotations


def printed(text: str) -> str:
    """`text` with what is not printable escaped: control characters move cursors and set titles."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
