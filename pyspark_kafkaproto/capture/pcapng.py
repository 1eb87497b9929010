"""pcapng: packets out of sections and interfaces with options, and frames into a file of our own.

Read: section, interface, enhanced, simple and the old packet block, and of name-resolution blocks
the names of hosts whose addresses `recorder.py` has made up; all else is passed over.
Options that matter are an interface's resolution and offset of time, and a packet's comments.
Format: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, pack
from typing import NamedTuple

from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, Packet, Source

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION, INTERFACE, OLD_PACKET, SIMPLE, NAMES, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 4, 6
COMMENT = 1  # an option of any block
IPV4_NAME = 1  # a record of a block of names

_ORDER_MAGIC = 0x1A2B3C4D
_END_OF_OPTIONS, _TSRESOL, _TSOFFSET = 0, 9, 14
_PACKET_BLOCKS = {OLD_PACKET: 20, SIMPLE: 4, ENHANCED: 20}
_OVERHEAD_BYTES = 12  # type, length, and the length again at the end
_INTERFACES_MAX = 65_536
_NAMES_MAX = 65_536
_FIRST_MADE_UP = 0xC6120001
_MADE_UP_MAX = (1 << 17) - 1  # how many there are
_NAME_BYTES_MAX = 255
_BLOCK_BYTES_MAX = PACKET_BYTES_MAX + (1 << 20)


class _Interface(NamedTuple):
    """What packets refer to: their link layer and how their times count."""

    link_type: int
    ticks_per_s: int
    offset_ns: int
    snap_bytes: int


class _Damage(Exception):
    """Why reading cannot go on."""


class PcapngReader:
    """The packets of a pcapng file, of all its sections and interfaces."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.damage = ""
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._names: dict[bytes, str] = {}
        self._last_time_ns = 0

    @property
    def done_bytes(self) -> int:
        """Bytes of the file that were read and taken."""
        return self.source.done_bytes

    def __iter__(self) -> Iterator[Packet]:
        try:
            while self.source.has(8):
                packet = self._block()
                if packet is not None:
                    yield packet
        except _Damage as damage:
            self.damage = str(damage)
            return
        if self.source.rest():
            self.damage = f"the file ends inside a block, {self.source.rest()} bytes into it"

    def _block(self) -> Packet | None:
        source = self.source
        if source.data[source.pos : source.pos + 4] == PCAPNG_MAGIC:
            self._begin_section()
        kind, size = self._unpack("II", source.pos)
        if size < _OVERHEAD_BYTES or size % 4:
            raise _Damage(f"a block of {size} bytes at byte {source.done_bytes}")
        if kind not in {SECTION, INTERFACE, NAMES, *_PACKET_BLOCKS}:
            if not source.skip(size):
                raise _Damage("the file ends inside a block")
            return None
        if size > _BLOCK_BYTES_MAX:
            raise _Damage(f"a block of {size} bytes at byte {source.done_bytes}")
        if not source.has(size):
            raise _Damage(f"the file ends inside a block, {source.rest()} bytes into it")
        body = source.data[source.pos + 8 : source.pos + size - 4]
        source.pos += size
        if kind == INTERFACE:
            if len(self._interfaces) >= _INTERFACES_MAX:
                raise _Damage(f"a section with more than {_INTERFACES_MAX} interfaces")
            self._interfaces.append(self._interface(body))
        elif kind == NAMES:
            self._learn_names(body)
        return self._packet(kind, body) if kind in _PACKET_BLOCKS else None

    def _unpack(self, layout: str, pos: int) -> tuple[int, ...]:
        return Struct(self._order + layout).unpack_from(self.source.data, pos)

    def _begin_section(self) -> None:
        if not self.source.has(28):
            raise _Damage("the file ends inside a section's header")
        magic = self.source.data[self.source.pos + 8 : self.source.pos + 12]
        orders = {pack(">I", _ORDER_MAGIC): ">", pack("<I", _ORDER_MAGIC): "<"}
        if magic not in orders:
            raise _Damage(f"a section with the byte-order magic {magic.hex()}")
        self._order = orders[magic]
        self._interfaces = []
        self._names = {}

    def _interface(self, body: bytes) -> _Interface:
        if len(body) < 8:
            raise _Damage("an interface block without a link type")
        link_type, _, snap_bytes = Struct(self._order + "HHI").unpack_from(body)
        ticks_per_s, offset_ns = 1_000_000, 0
        for code, value in _options(body, 8, self._order):
            if code == _TSRESOL and value:
                exponent = value[0] & 0x7F
                ticks_per_s = 2**exponent if value[0] & 0x80 else 10**exponent
            elif code == _TSOFFSET and len(value) == 8:
                offset_ns = Struct(self._order + "q").unpack(value)[0] * 1_000_000_000
        return _Interface(link_type, ticks_per_s, offset_ns, snap_bytes)

    def _learn_names(self, body: bytes) -> None:
        for code, value in _options(body, 0, self._order):
            address, name = value[:4], value[4:].partition(b"\0")[0]
            if code != IPV4_NAME or not is_made_up(address) or not name:
                continue
            if len(self._names) < _NAMES_MAX:
                self._names[address] = str(name[:_NAME_BYTES_MAX], "utf-8", "replace")

    def _packet(self, kind: int, body: bytes) -> Packet:
        start = _PACKET_BLOCKS[kind]
        if len(body) < start:
            raise _Damage(f"a packet block of {len(body)} bytes")
        if kind == SIMPLE:
            return self._simple_packet(body)
        layout = "IIIII" if kind == ENHANCED else "HHIIII"
        fields = Struct(self._order + layout).unpack_from(body)
        interface = self._interface_of(fields[0])
        high, low, kept, size = fields[-4:]
        if kept > len(body) - start:
            raise _Damage(f"a packet of {kept} bytes in a block of {len(body)}")
        ticks = high << 32 | low
        self._last_time_ns = interface.offset_ns + ticks * 1_000_000_000 // interface.ticks_per_s
        data = body[start : start + kept]
        comments = self._comments(body, start + kept + -kept % 4)
        return Packet(self._last_time_ns, interface.link_type, data, size, comments, self._names)

    def _comments(self, body: bytes, pos: int) -> tuple[str, ...]:
        if pos >= len(body):
            return ()
        found = [value for code, value in _options(body, pos, self._order) if code == COMMENT]
        return tuple(str(value, "utf-8", "replace") for value in found)

    def _simple_packet(self, body: bytes) -> Packet:
        """A packet without a time of its own: it takes that of the one before it."""
        interface = self._interface_of(0)
        (size,) = Struct(self._order + "I").unpack_from(body)
        kept = min(size, interface.snap_bytes or size, len(body) - 4)
        data = body[4 : 4 + kept]
        return Packet(self._last_time_ns, interface.link_type, data, size, (), self._names)

    def _interface_of(self, number: int) -> _Interface:
        if number >= len(self._interfaces):
            raise _Damage(f"a packet of interface {number}, which the section does not have")
        return self._interfaces[number]


def made_up_address(number: int) -> bytes:
    """An IPv4 address of 198.18.0.0/15, which no host has: it stands for a name. Any number."""
    return (_FIRST_MADE_UP + number % _MADE_UP_MAX).to_bytes(4, "big")


def is_made_up(address: bytes) -> bool:
    """Whether an IPv4 address stands for a name; see `made_up_address`."""
    return len(address) == 4 and (int.from_bytes(address, "big") ^ _FIRST_MADE_UP) >> 17 == 0


def _options(body: bytes, pos: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Codes and values; they end where they say, or where the block does."""
    layout = Struct(order + "HH")
    while pos + 4 <= len(body):
        code, size = layout.unpack_from(body, pos)
        if code == _END_OF_OPTIONS:
            return
        yield code, body[pos + 4 : pos + 4 + size]
        pos += 4 + size + -size % 4
