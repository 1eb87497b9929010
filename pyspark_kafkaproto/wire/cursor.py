"""The only place where a position moves: a reader bounded by its data, and a writer.

Every size is compared with what is left before it is used. Nothing here knows what a size is the
size of; a path to the field is added by whoever asked (wire/schema.py).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any, TypeAlias

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire.path import UnwritableValue

Buffer: TypeAlias = bytes | bytearray | memoryview

_VARINT_BYTES_MAX = 5
_LARGE_BYTES = 32 << 10  # copying them takes longer than handing on another piece
_UINT32_MAX = 0xFFFFFFFF


class Cursor:
    """Reads `data` from its start; asking for more than is left is a RemoteProtocolError.

    Attributes:
        pos: bytes read so far.
        elements: of arrays, read one by one so far: what takes the time.
    """

    __slots__ = ("_data", "_stop", "elements", "pos")

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data).cast("B")
        self._stop = len(self._data)
        self.pos = 0
        self.elements = 0

    @property
    def left(self) -> int:
        """How many bytes have not been read."""
        return self._stop - self.pos

    def unpack(self, layout: Layout) -> tuple[Any, ...]:
        """The values of fixed size that `layout` describes."""
        pos = self.pos
        stop = pos + layout.size
        if stop > self._stop:
            raise self._short(layout.size)
        self.pos = stop
        return layout.unpack_from(self._data, pos)

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        pos = self.pos
        stop = pos + size
        if size < 0 or stop > self._stop:
            raise self._short(size)
        self.pos = stop
        return self._data[pos:stop]

    def unsigned_varint(self) -> int:
        """An unsigned 32-bit number in one to five bytes of seven bits, lowest first."""
        pos = self.pos
        if pos < self._stop and (first := self._data[pos]) < 0x80:
            self.pos = pos + 1
            return first
        value, self.pos = long_varint(self._data, pos)
        return value

    def read_with(self, read: Callable[[memoryview, int, int], tuple[Any, int]]) -> Any:
        """The value that `read` finds, given the data, the position and the end of the data.

        `read` gives the position behind it, too; where it raises, nothing was read.
        """
        value, self.pos = read(self._data, self.pos, self._stop)
        return value

    def finish(self) -> None:
        """Refuse bytes that nobody asked for."""
        if self.left:
            raise RemoteProtocolError(f"{self.left} bytes are left over")

    def _short(self, size: int) -> RemoteProtocolError:
        return RemoteProtocolError(f"{size} bytes are announced, {self.left} are left")


def long_varint(data: memoryview, pos: int) -> tuple[int, int]:
    """An unsigned 32-bit number in up to five bytes at `pos`, and the position behind it."""
    start = pos
    value = shift = 0
    for byte in data[pos : pos + _VARINT_BYTES_MAX]:
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value <= _UINT32_MAX:
            return value, pos
        shift += 7
    if pos - start < _VARINT_BYTES_MAX:
        raise RemoteProtocolError("the data ends inside a varint")
    raise RemoteProtocolError("a varint is longer than five bytes or over 32 bits")


class Writer:
    """Collects parts and joins them once, so that a large payload is copied a single time.

    Attributes:
        size: bytes written so far.
    """

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        self.size = 0

    def pack(self, layout: Layout, *values: Any) -> None:
        """Write values of fixed size; one that does not fit is an UnwritableValue."""
        try:
            part = layout.pack(*values)
        except (struct_error, OverflowError) as error:
            shown = ", ".join(map(repr, values))
            raise UnwritableValue(f"{shown} cannot be written: {error}") from None
        self.put(part)

    def put(self, part: Buffer) -> None:
        """Write bytes as they are."""
        self._parts.append(part)
        self.size += part.nbytes if isinstance(part, memoryview) else len(part)

    def unsigned_varint(self, value: int) -> None:
        """Write an unsigned 32-bit number in groups of seven bits, lowest first."""
        if not 0 <= value <= _UINT32_MAX:
            raise UnwritableValue(f"{value} is no unsigned 32-bit number")
        groups = bytearray()
        while value > 0x7F:
            groups.append(value & 0x7F | 0x80)
            value >>= 7
        groups.append(value)
        self.put(groups)

    def append(self, other: Writer) -> None:
        """Write what another writer has collected."""
        self._parts += other._parts
        self.size += other.size

    def getvalue(self) -> bytes:
        """Everything written so far as one piece."""
        return b"".join(self._parts)

    def pieces(self) -> list[memoryview]:
        """Everything written so far: large parts where they stand, what is between them joined."""
        if self.size < _LARGE_BYTES:
            return [memoryview(self.getvalue())]
        found: list[memoryview] = []
        for is_large, parts in groupby(self._parts, _is_large):
            if is_large:
                found += (memoryview(part).cast("B") for part in parts)  # counted in bytes
            else:
                found.append(memoryview(b"".join(parts)))
        return found


def _is_large(part: Buffer) -> bool:
    return len(part) >= _LARGE_BYTES
