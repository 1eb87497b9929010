"""Errors that know their field: `topics[3].partitions[0].records`.

Whoever fails knows only the reason; each level on the way out puts its own step in front. That
costs nothing while all is well, and no codec has to know where in a message it stands.
"""

from __future__ import annotations

from typing import TypeVar

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError


class UnwritableValue(LocalProtocolError):
    """A value that a message, or this version of it, cannot carry.

    Args:
        reason: what is wrong with the value.
        where: the message and its version.
        path: the field that holds the value.
    """

    def __init__(self, reason: str, *, where: str = "", path: str = "") -> None:
        super().__init__(": ".join(part for part in (where, path, reason) if part))
        self.reason = reason
        self.where = where
        self.path = path


class UnwritableText(UnwritableValue):
    """Text that no version of any message can carry, or what is given in place of one."""


class NoUtf8(UnwritableText):
    """Text that cannot be encoded; the reason shows it."""


_Error = TypeVar("_Error", RemoteProtocolError, UnwritableValue)


def inside(error: _Error, step: str) -> _Error:
    """The same error, found inside `step`: a field's name, or an index in brackets."""
    dot = "" if error.path[:1] in {"", "["} else "."
    return type(error)(error.reason, path=f"{step}{dot}{error.path}")


def within(error: _Error, where: str) -> _Error:
    """The same error, with the message it was found in."""
    return type(error)(error.reason, where=where, path=error.path)
