"""Packets, and what a file of them is read with, whichever its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple, Protocol

from pyspark_kafkaproto.capture.link import NO_NAMES

# Wireshark's own limit for packets that are not from USB or the like.
PACKET_BYTES_MAX = 262_144
# Larger ones get fresh memory each time, a page fault for every 4 kB.
_PIECE_BYTES = 1 << 17


class Packet(NamedTuple):
    """One captured packet.

    time_ns: nanoseconds since 1970 UTC. size_bytes: on the wire; `data` may be less of it.
    comments: what somebody wrote beside it; names: of hosts whose addresses are made up, as far as
    its file has told. pcapng alone has them.
    """

    time_ns: int
    link_type: int
    data: bytes
    size_bytes: int
    comments: tuple[str, ...] = ()
    names: Mapping[bytes, str] = NO_NAMES


class Source:
    """A file read from front to end in large pieces.

    Attributes:
        data, pos: the piece at hand, and how much of it was taken.
    """

    def __init__(self, stream: BinaryIO, piece_bytes: int = _PIECE_BYTES) -> None:
        self._piece_bytes = piece_bytes
        # A pipe from a running tcpdump gives what there is, and does not wait for a whole piece.
        self._read = getattr(stream, "read1", stream.read)
        self._read_bytes = 0
        self.data = b""
        self.pos = 0

    @property
    def done_bytes(self) -> int:
        """Bytes of the file that were read and taken."""
        return self._read_bytes - (len(self.data) - self.pos)

    def has(self, size: int) -> bool:
        """Whether `size` bytes stand at `pos`, reading on if need be."""
        left = len(self.data) - self.pos
        if left >= size:
            return True
        parts = [self.data[self.pos :]]
        while left < size:
            part = self._read(self._piece_bytes)
            if not part:
                break
            parts.append(part)
            left += len(part)
            self._read_bytes += len(part)
        self.data = b"".join(parts)
        self.pos = 0
        return left >= size

    def skip(self, size: int) -> bool:
        """Pass over `size` bytes, however many; False when the file ends before."""
        while size > 0:
            step = min(size, self._piece_bytes)
            if not self.has(step):
                return False
            self.pos += step
            size -= step
        return True

    def rest(self) -> int:
        """How many bytes are at hand and not taken."""
        return len(self.data) - self.pos


class PacketReader(Protocol):
    """What both formats give."""

    @property
    def damage(self) -> str:
        """Why reading ended before the end of the file; "" if it did not."""

    @property
    def done_bytes(self) -> int:
        """How far in the file it is, for a progress bar."""

    def __iter__(self) -> Iterator[Packet]:
        """The packets in the order of the file."""
