"""Packets out of a capture file, one after the other: pcap here, pcapng in pcapng.py.

All four magics of pcap: either byte order, microseconds or nanoseconds. A file that ends inside a
packet, as one does that is still being written, gives what it holds, and says so in `damage`.
Format: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO

from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, Packet, PacketReader, Source
from pyspark_kafkaproto.capture.pcapng import PCAPNG_MAGIC, PcapngReader
from pyspark_kafkaproto.errors import UnreadableCapture

_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
_FILE_HEADER_BYTES = 24
HEADER_BYTES = 16  # of a packet
_LINK_TYPE_MASK = 0x0FFF_FFFF  # the rest says how long a frame check sequence is


def open_capture(stream: BinaryIO, name: str = "the capture") -> PacketReader:
    """The reader for a capture, by its first bytes.

    Args:
        stream: a binary file or pipe, at its start.
        name: what an error calls it.

    Raises:
        UnreadableCapture: it is neither pcap nor pcapng; says what it looks like.
    """
    source = Source(stream)
    source.has(_FILE_HEADER_BYTES)
    magic = source.data[:4]
    if magic == PCAPNG_MAGIC:
        return PcapngReader(source)
    if magic not in _MAGICS or len(source.data) < _FILE_HEADER_BYTES:
        raise UnreadableCapture(name, _looks_like(source.data))
    return PcapReader(source)


def _looks_like(start: bytes) -> str:
    if not start:
        return "it is empty"
    if start[:2] == b"\x1f\x8b" or start[:4] == b"\x28\xb5\x2f\xfd":
        return "it is compressed: decompress it first, for example zcat FILE | kafkaproto dissect -"
    if start[:4] in _MAGICS:
        return f"it ends inside its header, after {len(start)} bytes"
    return f"it begins with {start[:4].hex(' ')}, which is neither pcap nor pcapng"


class PcapReader:
    """The packets of a pcap file. Between two of them others may take some from the source.

    Attributes:
        link_type: of all its packets.
        is_big_endian: whether numbers of the file are.
        header: of a packet: seconds, their fraction, bytes kept, bytes on the wire.
        unit_ns: of the fraction.
    """

    def __init__(self, source: Source) -> None:
        order, self.unit_ns = _MAGICS[source.data[:4]]
        (link_type,) = Struct(order + "I").unpack_from(source.data, 20)
        self.link_type = link_type & _LINK_TYPE_MASK
        self.is_big_endian = order == ">"
        self.header = Struct(order + "IIII")
        self.source = source
        self.damage = ""
        source.pos = _FILE_HEADER_BYTES

    @property
    def done_bytes(self) -> int:
        """Bytes of the file that were read and taken."""
        return self.source.done_bytes

    def __iter__(self) -> Iterator[Packet]:
        source, unpack, unit_ns = self.source, self.header.unpack_from, self.unit_ns
        while source.has(HEADER_BYTES):
            seconds, fraction, kept, size = unpack(source.data, source.pos)
            if kept > PACKET_BYTES_MAX:
                self.damage = f"a packet of {kept} bytes at byte {source.done_bytes}"
                return
            if not source.has(HEADER_BYTES + kept):
                break
            start = source.pos + HEADER_BYTES
            source.pos = stop = start + kept
            time_ns = seconds * 1_000_000_000 + fraction * unit_ns
            yield Packet(time_ns, self.link_type, source.data[start:stop], size)
        if source.rest():
            self.damage = f"the file ends inside a packet, {source.rest()} bytes into it"
