"""Random messages of a class in a version, from a seed: the edges first, then anything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

from pyspark_kafkaproto.wire.declaration import NO_ID, Field, Message, Struct

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
_FLOATS = (0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308)
# A size of 127 is the first that takes two bytes as compact size, 32767 the largest text there is.
_TEXTS = ("", "a", "orders", "ß € 😀", "\0", "ü" * 63 + "y", "x" * 127, "x" * 128, "x" * 255)
_LONGEST_TEXT = "z" * 32767
_BINARIES = (b"", b"\0", b"\xff\xfe", bytes(126), bytes(range(128)), bytes(20_000))
_IDS = (NO_ID, b"\xff" * 16, bytes(range(16)))
# Tags that are declared are all below 100; 2**31 - 1 is what Kafka's writer calls none at all.
_TAGS = (100, 127, 128, 16383, 16384, 2**31 - 2)
_MANY = 130
# How deep arrays hold more than one structure, and how often one value is extremely large.
_WIDE_DEPTH = 2
_ONE_IN = 200


def random_messages(
    cls: type[Message], version: int, count: int, random: Random
) -> Iterator[Message]:
    """`count` messages that `version` can carry: all default, least, most, null, then random."""
    flexible = cls.is_flexible(version)
    for make in (_Least, _Most, _Null)[: max(0, count - 1)]:
        yield make(random, version, flexible=flexible).struct(cls)
    yield cls()
    for _ in range(count - 4):
        yield _Maker(random, version, flexible=flexible).struct(cls)


def without_unknown_tags(value: Any) -> Any:
    """The same with nothing but declared fields."""
    if isinstance(value, tuple):
        return tuple(without_unknown_tags(item) for item in value)
    if not isinstance(value, Struct):
        return value
    return type(value)(
        **{name: without_unknown_tags(getattr(value, name)) for name in type(value).FIELDS}
    )


class _Maker:
    """Draws the values of fields; subclasses always draw the same kind of edge."""

    def __init__(self, random: Random, version: int, *, flexible: bool) -> None:
        self._random = random
        self._version = version
        self._flexible = flexible
        self._depth = 0

    def struct(self, cls: type[Struct]) -> Any:
        """An instance with all fields of the version, and unknown ones where that may have any."""
        values = {
            name: self.field(declared)
            for name, declared in cls.FIELDS.items()
            if self._version in declared.versions
        }
        return cls(**values, unknown_tagged_fields=self.tags() if self._flexible else ())

    def field(self, declared: Field) -> Any:
        """A value of one field."""
        nullable = declared.is_nullable(self._version)
        if nullable and self.is_null():
            return None
        if not declared.is_array:
            return self.element(declared.kind)
        self._depth += 1
        values = tuple(self.element(declared.kind) for _ in range(self.length(declared)))
        self._depth -= 1
        return values

    def element(self, kind: Any) -> Any:
        """A value of one type."""
        if not isinstance(kind, str):
            return self.struct(kind)
        if kind in _BITS:
            return self.integer(-(1 << _BITS[kind] - 1), (1 << _BITS[kind] - 1) - 1)
        if kind in _UNSIGNED_BITS:
            return self.integer(0, (1 << _UNSIGNED_BITS[kind]) - 1)
        return self.pick(_POOLS[kind])

    def is_null(self) -> bool:
        """Whether a field that may be null is."""
        return self._random.random() < 0.25

    def length(self, declared: Field) -> int:
        """How many elements an array has."""
        if isinstance(declared.kind, str) and self._random.randrange(_ONE_IN) == 0:
            return _MANY
        return self._random.randrange(4 if self._depth <= _WIDE_DEPTH else 2)

    def integer(self, least: int, most: int) -> int:
        """A number, an edge more often than not."""
        anything = self._random.randint(least, most)
        edges = (least, most, max(least, -1), 0, 1, 128, anything, anything, anything)
        return self._random.choice([edge for edge in edges if least <= edge <= most])

    def pick(self, pool: tuple[Any, ...]) -> Any:
        """One of several values."""
        if pool is _TEXTS and self._random.randrange(_ONE_IN) == 0:
            return _LONGEST_TEXT
        return self._random.choice(pool)

    def tags(self) -> tuple[tuple[int, bytes], ...]:
        """Tagged fields that nobody declared."""
        if self._random.random() < 0.7:
            return ()
        tags = sorted(self._random.sample(_TAGS, self._random.randint(1, 3)))
        return tuple((tag, self._random.choice(_BINARIES[:-1])) for tag in tags)


class _Least(_Maker):
    """Everything is as small as can be: minima, empty texts, no elements."""

    def is_null(self) -> bool:
        return False

    def length(self, declared: Field) -> int:
        return 0

    def integer(self, least: int, most: int) -> int:
        return least

    def pick(self, pool: tuple[Any, ...]) -> Any:
        return pool[0]

    def tags(self) -> tuple[tuple[int, bytes], ...]:
        return ()


class _Most(_Least):
    """Numbers are maxima, arrays have elements, all unknown tags are there."""

    def length(self, declared: Field) -> int:
        return 2 if self._depth <= _WIDE_DEPTH else 1

    def integer(self, least: int, most: int) -> int:
        return most

    def pick(self, pool: tuple[Any, ...]) -> Any:
        return pool[-1]

    def tags(self) -> tuple[tuple[int, bytes], ...]:
        return tuple((tag, b"?" * (tag % 3)) for tag in _TAGS)


class _Null(_Most):
    """What may be null is."""

    def is_null(self) -> bool:
        return True


_POOLS: dict[str, tuple[Any, ...]] = {
    "bool": (False, True),
    "float64": _FLOATS,
    "string": _TEXTS,
    "bytes": _BINARIES,
    "records": _BINARIES,
    "uuid": _IDS,
}
