"""Frames written as a capture: pcapng that Wireshark and `kafkaproto dissect` open.

What is known is frames and addresses, not packets, so packets are made up around the frames: raw
IP, sequence numbers that fit, no handshake that nobody saw. Secrets are zeroed before anything is
written. A host that is known by its name gets an address out of 198.18.0.0/15, which is never
routed, and a name-resolution block that says so.
Format: draft-ietf-opsawg-pcapng; RFC 791, RFC 8200, RFC 9293.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from struct import pack
from typing import NamedTuple
from zlib import crc32

from pyspark_kafkaproto.capture.link import ACK, FIN, RAW, SYN
from pyspark_kafkaproto.capture.naming import naming_comment
from pyspark_kafkaproto.capture.pcapng import (
    COMMENT,
    ENHANCED,
    INTERFACE,
    IPV4_NAME,
    NAMES,
    SECTION,
    made_up_address,
)
from pyspark_kafkaproto.capture.secrets import Speakers
from pyspark_kafkaproto.wire.cursor import Buffer

Write = Callable[[bytes], object]

_NANOSECONDS = pack("<HHBxxx", 9, 1, 9) + pack("<HH", 0, 0)  # if_tsresol, then the end
_COMMENTS_MAX = 1000  # of a packet
_PIECE_BYTES = 60_000  # of a frame per packet: IP counts to 65,535
_MASK = 0xFFFFFFFF


class Address(NamedTuple):
    """An end of a connection: a host, as an address or a name, and a port."""

    host: str
    port: int


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = pack("<I", len(body) + 12)
    return pack("<I", kind) + size + body + size


def file_start() -> bytes:
    """The section and the one interface, with which a file begins."""
    section = _block(SECTION, pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    return section + _block(INTERFACE, pack("<HHI", RAW, 0, 0) + _NANOSECONDS)


class Recorder:
    """Writes the frames of many connections into one file. Threads may share it.

    Args:
        write: takes bytes, in order.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._hosts: dict[str, bytes] = {}
        self._named = 0
        self._comments: list[str] = []
        write(file_start())

    def connection(self, client: Address, broker: Address, time_ns: int = 0) -> Track:
        """A connection that begins at `time_ns`, or now."""
        track = Track(self._put, client, broker, self._host_bytes)
        track.begin(time_ns or time.time_ns())
        return track

    def name_topics(self, names: Mapping[bytes, str]) -> None:
        """Ids of topics: the next packets bear the names of those that are new in this file.

        Args:
            names: always the same mapping, which only grows.
        """
        if len(names) == self._named:
            return
        with self._lock:
            new = list(names.items())[self._named :]
            self._named += len(new)
            self._comments += [naming_comment(*item) for item in new]

    def _put(self, time_ns: int, packet: bytes, missing_bytes: int) -> None:
        ticks = pack("<III", 0, time_ns >> 32, time_ns & _MASK)
        sizes = pack("<II", len(packet), len(packet) + missing_bytes)
        with self._lock:
            options = self._next_options()
            padding = bytes(-len(packet) % 4) if options else b""
            self._write(_block(ENHANCED, ticks + sizes + packet + padding + options))

    def _next_options(self) -> bytes:
        """Comments that wait, as the options of a packet."""
        if not self._comments:
            return b""
        now, self._comments = self._comments[:_COMMENTS_MAX], self._comments[_COMMENTS_MAX:]
        texts = [comment.encode() for comment in now]
        options = [pack("<HH", COMMENT, len(text)) + text + bytes(-len(text) % 4) for text in texts]
        return b"".join(options) + pack("<HH", 0, 0)

    def _host_bytes(self, host: str) -> bytes:
        """The address of a host, made up for one that is known by name."""
        with self._lock:
            if host not in self._hosts:
                try:
                    self._hosts[host] = ip_address(host).packed
                except ValueError:
                    made_up = self._free_address(host)
                    self._hosts[host] = made_up
                    record = made_up + host.encode() + b"\x00"
                    entry = pack("<HH", IPV4_NAME, len(record)) + record + bytes(-len(record) % 4)
                    self._write(_block(NAMES, entry + pack("<HH", 0, 0)))
            return self._hosts[host]

    def _free_address(self, name: str) -> bytes:
        """Made of the name, so that files that are read together tell brokers apart.

        Processes of one machine may have the same port at a time, each to a broker of its own.
        """
        number, taken = crc32(name.encode()), set(self._hosts.values())
        while (address := made_up_address(number)) in taken:
            number += 1
        return address


class Track:
    """One connection being recorded: `sent` and `received` take frames without size prefix."""

    def __init__(
        self,
        put: Callable[[int, bytes, int], None],
        client: Address,
        broker: Address,
        host_bytes: Callable[[str], bytes],
    ) -> None:
        self._put = put
        hosts = host_bytes(client.host), host_bytes(broker.host)
        if len(hosts[0]) != len(hosts[1]):  # an IPv4 address beside an IPv6 one is written as such
            hosts = _mapped(hosts[0]), _mapped(hosts[1])
        self._ends = ((hosts[0], client.port), (hosts[1], broker.port))
        self._seqs = [0, 0]
        self._speakers = Speakers()
        self._lock = threading.Lock()

    def begin(self, time_ns: int) -> None:
        """The connection's opening.

        Ports are used again, in this file or in another one that is read with it: an opening with
        the number of an earlier one would be that one, come twice, and so would all that follows.
        """
        first = crc32(repr((time_ns, self._ends)).encode())
        self._seqs = [first, first]
        for side, flags in enumerate((SYN, SYN | ACK)):
            self._packet(time_ns, side, flags, b"", 0)
            self._seqs[side] = (first + 1) & _MASK

    def sent(self, payload: Buffer, time_ns: int = 0) -> None:
        """A request, or a token."""
        self._frame(0, self._speakers.hide_request(payload), len(payload), time_ns)

    def received(self, payload: Buffer, time_ns: int = 0) -> None:
        """A response, or a token."""
        self._frame(1, self._speakers.hide_response(payload), len(payload), time_ns)

    def on_frame(self, direction: str, pieces: Sequence[memoryview], time_ns: int) -> None:
        """The hook of `net.Connection`."""
        payload = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        (self.sent if direction == "sent" else self.received)(payload, time_ns)

    def kept(self, direction: str, start: bytes, size_bytes: int, time_ns: int) -> None:
        """A frame of which only the start was kept, secrets left out of it already."""
        self._frame(int(direction != "sent"), start, size_bytes, time_ns)

    def close(self) -> None:
        """The connection's end."""
        with self._lock:
            self._packet(time.time_ns(), 0, FIN | ACK, b"", 0)
            self._packet(time.time_ns(), 1, FIN | ACK, b"", 0)

    def _frame(self, side: int, kept: Buffer, size: int, time_ns: int) -> None:
        """A whole frame in packets; what is not kept of it is said to be missing."""
        data = size.to_bytes(4) + bytes(kept)
        with self._lock:
            for start in range(0, size + 4, _PIECE_BYTES):
                stop = min(start + _PIECE_BYTES, size + 4)
                piece = data[start:stop]
                missing = stop - start - len(piece)
                self._packet(time_ns or time.time_ns(), side, ACK, piece, missing)
                self._seqs[side] = (self._seqs[side] + stop - start) & _MASK

    def _packet(self, time_ns: int, side: int, flags: int, payload: bytes, missing: int) -> None:
        (source, port), (target, other) = self._ends[side], self._ends[1 - side]
        seq, ack = self._seqs[side], self._seqs[1 - side]
        tcp = pack(">HHIIBBHHH", port, other, seq, ack, 0x50, flags, 65535, 0, 0)
        size = len(tcp) + len(payload) + missing
        if len(source) == 4:
            front = pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, 6, 0)
        else:
            front = pack(">IHBB", 6 << 28, size, 6, 64)
        self._put(time_ns, front + source + target + tcp + payload, missing)


def _mapped(host: bytes) -> bytes:
    return host if len(host) == 16 else bytes(10) + b"\xff\xff" + host
