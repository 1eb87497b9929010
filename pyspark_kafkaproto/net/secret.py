"""A text that is never shown: passwords, keys, tokens."""

from __future__ import annotations


class Secret:
    """Holds a text and shows stars wherever it is printed, logged or formatted.

    A value: equal where the texts are equal, hashable, picklable (executors need it).
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for whoever sends or loads it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)


HIDDEN = "(not shown)"  # in place of a secret's value, in errors
