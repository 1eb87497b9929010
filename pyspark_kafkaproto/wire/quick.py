"""Readers for messages that come again and again: one function, made for one class and version.

The codec of wire/schema.py asks at every field what it is; here that was asked once, and what is
left stands in a row: positions, `struct` calls, slots. Three times as fast, but a few milliseconds
to make, so one is made when a message has been read often enough, or a large one once.

Whoever asks for a few fields of each message names them: structures come as tuples of those, and
the others are passed over, checked like the rest.

The codec stays the law. Whatever a function does not expect (an end of the data, tagged fields, a
null where none may be, bytes that are not UTF-8) is UNEXPECTED, and the codec reads the message
from its start: it knows what is wrong, and where. What a function does give is what the codec
gives; tests/property/test_quick.py holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from struct import Struct as Layout
from struct import calcsize, unpack_from
from struct import error as struct_error
from typing import Any, Generic, TypeAlias, TypeVar

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire.cursor import long_varint
from pyspark_kafkaproto.wire.declaration import Field, Kind, Struct
from pyspark_kafkaproto.wire.types import FIXED, TEXT_BYTES_MAX

Made = TypeVar("Made")

QuickReader: TypeAlias = Callable[[memoryview, int, int], tuple[Any, int]]
"""From data, position and end of the data to a message and the position behind it."""

_NULL_FLAG = 0xFF  # -1, in front of a structure that is not there
_NOBODY = "_"  # the variable of what nobody asks for
_SLICES = {
    "string": 'str(data[pos:end], "utf-8")',
    "bytes": "bytes(data[pos:end])",
    "records": "data[pos:end]",
}


class Unusual(Exception):
    """For the codec to look at."""


UNEXPECTED = (Unusual, RemoteProtocolError, IndexError, struct_error, UnicodeDecodeError)
"""What a quick reader raises where the codec has to read."""


Wanted: TypeAlias = Callable[[type[Struct]], Sequence[str]]
"""Which fields of a class are asked for."""


def quick_reader(
    cls: type[Struct],
    version: int,
    *,
    flexible: bool,
    wanted: Wanted | None = None,
    is_front: bool = False,
) -> QuickReader:
    """The reader of a class in a version.

    Args:
        cls: what it reads.
        version: in which version.
        flexible: with compact sizes and tagged fields.
        wanted: structures come as tuples of these fields; None: as instances of their classes.
        is_front: it stops behind the last field that is wanted of `cls`.
    """
    source = _Source(version, flexible=flexible, wanted=wanted)
    source.line(0, "def read(data, pos, stop):")
    made = source.struct(cls, 1, is_front=is_front)
    source.line(1, f"return {made}, pos")
    text = compile(source.text(), f"<{cls.__qualname__} v{version}>", "exec")
    exec(text, source.names)  # noqa: S102  made of declarations, never of what was read
    reader: QuickReader = source.names["read"]
    return reader


def picked(value: Any, wanted: Wanted) -> Any:
    """A structure, or an array of them, as a reader with `wanted` gives it; others as they are."""
    if isinstance(value, Struct):
        return tuple(picked(getattr(value, name), wanted) for name in wanted(type(value)))
    if isinstance(value, tuple) and value and isinstance(value[0], Struct):
        return tuple(picked(each, wanted) for each in value)
    return value


# Uses after which it is worth its making, or is tried again; surprises after which it rests. A
# message is as many uses as it has elements: so many take the codec as long as the making.
_OFTEN = 500
_SURPRISES_MAX = 100


class Often(Generic[Made]):
    """Something that is made when it would have been used often, and rests when it is no help.

    Attributes:
        made: the thing itself; None while it is too early for it, or while it rests. Another thread
            may change this at any time.
    """

    __slots__ = ("_kept", "_make", "_misses", "_surprises", "made")

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._kept: Made | None = None
        self._misses = self._surprises = 0
        self.made: Made | None = None

    def miss(self, times: int = 1) -> None:
        """It would have been used, had it been there; `times` as much as for something small."""
        self._misses += times
        if self._misses >= _OFTEN:
            self._misses = self._surprises = 0
            self._kept = self.made = self._kept or self._make()

    def surprise(self) -> None:
        """It was used and did not help."""
        self._surprises += 1
        if self._surprises >= _SURPRISES_MAX:
            self.made = None


class _Source:
    """The text of a function, line by line.

    Attributes:
        names: what the text calls by name.
    """

    def __init__(self, version: int, *, flexible: bool, wanted: Wanted | None) -> None:
        self.names: dict[str, Any] = {
            "Unusual": Unusual,
            "new": object.__new__,
            "unpack_from": unpack_from,
            "varint": long_varint,
        }
        self._version = version
        self._flexible = flexible
        self._wanted = wanted
        self._lines: list[str] = []
        self._numbers = count()

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    def line(self, depth: int, text: str) -> None:
        """One more."""
        self._lines.append("    " * depth + text)

    def _variable(self) -> str:
        return f"v{next(self._numbers)}"

    def _constant(self, value: Any) -> str:
        name = f"C{next(self._numbers)}"
        self.names[name] = value
        return name

    def struct(
        self, cls: type[Struct], depth: int, *, is_wanted: bool = True, is_front: bool = False
    ) -> str:
        """Read a structure, or its front; the variable that holds what is asked for of it."""
        wanted = self._wanted_of(cls) if is_wanted else ()
        values: dict[str, str] = {}
        numbers: list[tuple[str, str]] = []  # neighbours: variable and kind
        for name, field in cls.FIELDS.items():
            if is_front and values.keys() >= set(wanted):
                break
            if self._version not in field.versions or field.tag is not None:
                if name in wanted:
                    values[name] = self._constant(self._picked(field.default))
                continue
            values[name] = variable = self._variable() if name in wanted else _NOBODY
            if field.kind in FIXED and not field.is_array:
                numbers.append((variable, str(field.kind)))
                continue
            self._numbers_of(numbers, depth)
            numbers = []
            self._field(field, variable, depth)
        self._numbers_of(numbers, depth)
        if self._flexible and not is_front:
            self.line(depth, "if data[pos]: raise Unusual")
            self.line(depth, "pos += 1")
        return self._made(cls, [values[name] for name in wanted], depth) if is_wanted else _NOBODY

    def _wanted_of(self, cls: type[Struct]) -> Sequence[str]:
        return tuple(cls.FIELDS) if self._wanted is None else self._wanted(cls)

    def _picked(self, default: Any) -> Any:
        return default if self._wanted is None else picked(default, self._wanted)

    def _made(self, cls: type[Struct], values: Sequence[str], depth: int) -> str:
        made = self._variable()
        if self._wanted is not None:
            self.line(depth, f"{made} = ({''.join(f'{value}, ' for value in values)})")
            return made
        self.line(depth, f"{made} = new({self._constant(cls)})")
        for assign, value in zip(cls.SETTERS, [*values, "()"], strict=True):
            self.line(depth, f"{self._constant(assign)}({made}, {value})")
        return made

    def _unless(self, condition: str, depth: int) -> None:
        self.line(depth, f"if not ({condition}): raise Unusual")

    def _numbers_of(self, numbers: list[tuple[str, str]], depth: int) -> None:
        if not numbers:
            return
        characters = [
            f"{calcsize('>' + FIXED[kind])}x" if variable == _NOBODY else FIXED[kind]
            for variable, kind in numbers
        ]
        layout = Layout(">" + "".join(characters))
        read = [variable for variable, _ in numbers if variable != _NOBODY]
        if read:
            variables = "".join(f"{variable}, " for variable in read)
            self.line(depth, f"{variables}= {self._constant(layout.unpack_from)}(data, pos)")
        else:
            self._unless(f"{layout.size} <= stop - pos", depth)
        self.line(depth, f"pos += {layout.size}")

    def _field(self, field: Field, variable: str, depth: int) -> None:
        """A field of variable size, or an array."""
        nullable = field.is_nullable(self._version)
        if not field.is_array:
            self._element(field.kind, variable, depth, nullable=nullable)
            return
        self._size("i", variable, depth, nullable=nullable)
        depth += nullable
        # Every element takes a byte at least.
        self._unless("size <= stop - pos", depth)
        if field.kind in FIXED:
            character = FIXED[str(field.kind)]
            width = calcsize(">" + character)
            self.line(depth, f'{variable} = unpack_from(f">{{size}}{character}", data, pos)')
            self.line(depth, f"pos += size * {width}")
            return
        elements = element = _NOBODY
        if variable != _NOBODY:
            elements, element = self._variable(), self._variable()
            self.line(depth, f"{elements} = []")
        self.line(depth, "for _ in range(size):")
        self._element(field.kind, element, depth + 1, nullable=False)
        if variable == _NOBODY:
            self.line(depth + 1, "pass  # there may be nothing to read")
        else:
            self.line(depth + 1, f"{elements}.append({element})")
            self.line(depth, f"{variable} = tuple({elements})")

    def _element(self, kind: Kind, variable: str, depth: int, *, nullable: bool) -> None:
        """One value that is no number."""
        is_wanted = variable != _NOBODY
        if not isinstance(kind, str):
            if nullable:
                self.line(depth, "flag = data[pos]")
                self.line(depth, "pos += 1")
                self.line(depth, f"if flag == {_NULL_FLAG}: {variable} = None")
                self.line(depth, "elif flag != 1: raise Unusual")
                self.line(depth, "else:")
            made = self.struct(kind, depth + nullable, is_wanted=is_wanted)
            if is_wanted:
                self.line(depth + nullable, f"{variable} = {made}")
            elif nullable:
                self.line(depth + nullable, "pass  # there may be nothing to read")
            return
        if kind == "uuid":
            self._slice("16", depth)
            value = "bytes(data[pos:end])"
        else:
            self._size("h" if kind == "string" else "i", variable, depth, nullable=nullable)
            depth += nullable
            if kind == "string" and self._flexible:  # else its two bytes say no more
                self._unless(f"size <= {TEXT_BYTES_MAX}", depth)
            self._slice("size", depth)
            value = _SLICES[kind]
        if is_wanted or kind == "string":  # which must be text, whoever asks for it
            self.line(depth, f"{variable} = {value}")
        self.line(depth, "pos = end")

    def _slice(self, size: str, depth: int) -> None:
        self.line(depth, f"end = pos + {size}")
        self._unless("end <= stop", depth)

    def _size(self, layout: str, variable: str, depth: int, *, nullable: bool) -> None:
        """A size; for null, `variable` is None, and what follows stands a step deeper."""
        if self._flexible:
            self.line(depth, "size = data[pos]")
            self.line(depth, "pos += 1")
            self.line(depth, "if size > 127: size, pos = varint(data, pos - 1)")
            self.line(depth, "size -= 1")
        else:
            number = Layout(">" + layout)
            self.line(depth, f"size, = {self._constant(number.unpack_from)}(data, pos)")
            self.line(depth, f"pos += {number.size}")
        self._unless(f"size >= {-nullable}", depth)
        if nullable:
            self.line(depth, f"if size < 0: {variable} = None")
            self.line(depth, "else:")
