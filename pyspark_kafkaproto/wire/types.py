"""The primitive types of Kafka's protocol guide, as codecs: one value out, one value in.

A codec reads from a `Cursor` and writes to a `Writer`. Sizes come in three spellings (`SHORT`,
`INT`, `COMPACT`); null is -1 in the first two and 0 in the third, where the size is written
plus one (KIP-482). Which spelling a field takes is decided in wire/schema.py, once per version.
"""

from __future__ import annotations

from struct import Struct as Layout
from struct import calcsize
from typing import Any, Protocol

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire.cursor import Cursor, Writer
from pyspark_kafkaproto.wire.path import NoUtf8, UnwritableText, UnwritableValue, inside

NULL = -1
TEXT_BYTES_MAX = 0x7FFF
"""The longest string in any spelling: Kafka's classes neither read nor write a longer one."""
NO_UTF_8 = "cannot be UTF-8, as all text in Kafka is"

_SHORT_COUNT = 8
_SHOWN = 100  # characters of a text on either side of what is wrong with it

# Format characters of `struct` for the types of fixed size that travel as one number.
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
}


class Codec(Protocol):
    """How one value is read and written."""

    def read(self, cursor: Cursor) -> Any:
        """The value at the cursor."""

    def write(self, writer: Writer, value: Any) -> None:
        """Write the value."""


class SizePrefix(Protocol):
    """How a size or a count is spelt; `NULL` stands for no value at all."""

    def read(self, cursor: Cursor) -> int:
        """The size, or NULL."""

    def write(self, writer: Writer, size: int) -> None:
        """Write the size, or NULL."""


class FixedPrefix:
    """A signed number of fixed width, -1 for null."""

    def __init__(self, layout: str) -> None:
        self._layout = Layout(layout)
        self._max = 2 ** (8 * self._layout.size - 1) - 1

    def read(self, cursor: Cursor) -> int:
        """The size, or NULL; any other negative number is refused."""
        (size,) = cursor.unpack(self._layout)
        if size < NULL:
            raise RemoteProtocolError(f"negative size {size}")
        return int(size)

    def write(self, writer: Writer, size: int) -> None:
        """Write the size, or NULL."""
        if size > self._max:
            raise UnwritableValue(f"size {size} is over {self._max}, the most this type holds")
        writer.pack(self._layout, size)


class CompactPrefix:
    """An unsigned varint of the size plus one, so that 0 is null (KIP-482)."""

    def read(self, cursor: Cursor) -> int:
        """The size, or NULL."""
        return cursor.unsigned_varint() - 1

    def write(self, writer: Writer, size: int) -> None:
        """Write the size, or NULL."""
        writer.unsigned_varint(size + 1)


SHORT = FixedPrefix(">h")
INT = FixedPrefix(">i")
COMPACT = CompactPrefix()


class Fixed:
    """A number of fixed size."""

    def __init__(self, kind: str) -> None:
        self._layout = Layout(">" + FIXED[kind])

    def read(self, cursor: Cursor) -> Any:
        """The number at the cursor."""
        return cursor.unpack(self._layout)[0]

    def write(self, writer: Writer, value: Any) -> None:
        """Write the number."""
        writer.pack(self._layout, value)


class Uuid:
    """A topic, directory or subscription id: 16 bytes, kept as `bytes`; all zero means none."""

    def read(self, cursor: Cursor) -> bytes:
        """The 16 bytes at the cursor."""
        return bytes(cursor.take(16))

    def write(self, writer: Writer, value: Any) -> None:
        """Write the 16 bytes."""
        if not isinstance(value, bytes) or len(value) != 16:
            raise UnwritableValue(f"an id is 16 bytes, not {value!r}")
        writer.put(value)


class Sized:
    """What strings, bytes and arrays share: a size in front, which may stand for null."""

    def __init__(self, prefix: SizePrefix, *, nullable: bool) -> None:
        self._prefix = prefix
        self._nullable = nullable

    def _read_size(self, cursor: Cursor) -> int:
        size = self._prefix.read(cursor)
        if size == NULL and not self._nullable:
            raise RemoteProtocolError("null where none is allowed")
        return size

    def _write_null(self, writer: Writer) -> None:
        if not self._nullable:
            raise UnwritableValue("None where no null is allowed")
        self._prefix.write(writer, NULL)


class Text(Sized):
    """A string in UTF-8."""

    def read(self, cursor: Cursor) -> str | None:
        """The string at the cursor."""
        size = self._read_size(cursor)
        if size == NULL:
            return None
        if size > TEXT_BYTES_MAX:
            raise RemoteProtocolError(_too_long(size))
        try:
            return str(cursor.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise RemoteProtocolError(f"not UTF-8: {error.reason}") from None

    def write(self, writer: Writer, value: Any) -> None:
        """Write the string."""
        if value is None:
            self._write_null(writer)
            return
        if not isinstance(value, str):
            raise UnwritableText(f"expected str, got {type(value).__name__}")
        try:
            data = value.encode()
        except UnicodeEncodeError as error:
            raise NoUtf8(_no_utf_8(value, error)) from None
        if len(data) > TEXT_BYTES_MAX:
            raise UnwritableText(_too_long(len(data)))
        self._prefix.write(writer, len(data))
        writer.put(data)


def _no_utf_8(text: str, error: UnicodeEncodeError) -> str:
    around = text[max(0, error.start - _SHOWN) : error.start + _SHOWN]
    return f"{around!r} {NO_UTF_8}: write it without {text[error.start]!r}"


def _too_long(size: int) -> str:
    return f"{size} bytes of text, the most is {TEXT_BYTES_MAX}"


class Binary(Sized):
    """Bytes, copied out of the frame."""

    def read(self, cursor: Cursor) -> bytes | memoryview | None:
        """The bytes at the cursor."""
        size = self._read_size(cursor)
        return None if size == NULL else bytes(cursor.take(size))

    def write(self, writer: Writer, value: Any) -> None:
        """Write bytes; the caller keeps them unchanged until the message is encoded."""
        if value is None:
            self._write_null(writer)
            return
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise UnwritableValue(f"expected bytes, got {type(value).__name__}")
        size = value.nbytes if isinstance(value, memoryview) else len(value)
        self._prefix.write(writer, size)
        writer.put(value)


class Records(Binary):
    """Record batches: a slice of the frame, not copied, so it lives as long as the frame."""

    def read(self, cursor: Cursor) -> memoryview | None:
        """The slice at the cursor."""
        size = self._read_size(cursor)
        return None if size == NULL else cursor.take(size)


class Array(Sized):
    """A sequence of anything, read as a tuple.

    Attributes:
        element: how each of them is read and written.
    """

    def __init__(self, element: Codec, prefix: SizePrefix, *, nullable: bool) -> None:
        super().__init__(prefix, nullable=nullable)
        self.element = element

    def read(self, cursor: Cursor) -> tuple[Any, ...] | None:
        """The elements at the cursor."""
        count = self.read_count(cursor)
        return None if count == NULL else self._read_elements(cursor, count)

    def read_count(self, cursor: Cursor) -> int:
        """How many elements follow, or NULL."""
        count = self._read_size(cursor)
        # Every element takes a byte at least, so a count over this cannot be true.
        if count > cursor.left:
            raise RemoteProtocolError(f"{count} elements are announced, {cursor.left} bytes left")
        return count

    def _read_elements(self, cursor: Cursor, count: int) -> tuple[Any, ...]:
        read = self.element.read
        elements: list[Any] = []
        try:
            for _ in range(count):
                elements.append(read(cursor))  # noqa: PERF401  its length names the failing element
        except RemoteProtocolError as error:
            raise inside(error, f"[{len(elements)}]") from None
        cursor.elements += count
        return tuple(elements)

    def write(self, writer: Writer, value: Any) -> None:
        """Write the elements."""
        if value is None:
            self._write_null(writer)
            return
        if not isinstance(value, (tuple, list)):
            raise UnwritableValue(f"expected a tuple, got {type(value).__name__}")
        self._prefix.write(writer, len(value))
        write = self.element.write
        for index, element in enumerate(value):
            try:
                write(writer, element)
            except UnwritableValue as error:
                raise inside(error, f"[{index}]") from None


class FixedArray(Array):
    """A sequence of numbers of fixed size, read in one go."""

    def __init__(self, kind: str, prefix: SizePrefix, *, nullable: bool) -> None:
        super().__init__(Fixed(kind), prefix, nullable=nullable)
        self._character = FIXED[kind]
        self._width = calcsize(">" + self._character)
        # Replica lists and the like have few elements, again and again.
        self._short = [Layout(f">{count}{self._character}") for count in range(_SHORT_COUNT)]

    def _read_elements(self, cursor: Cursor, count: int) -> tuple[Any, ...]:
        if count * self._width > cursor.left:
            raise RemoteProtocolError(f"{count} elements are announced, {cursor.left} bytes left")
        if count < _SHORT_COUNT:
            return cursor.unpack(self._short[count])
        return cursor.unpack(Layout(f">{count}{self._character}"))
