"""Captures made by hand: TCP segments in every wrapping, as pcap; the blocks of pcapng."""

from __future__ import annotations

import io
from struct import pack

from pyspark_kafkaproto.capture import Message, Note, open_capture, read_messages
from pyspark_kafkaproto.capture.link import ACK, ETHERNET, FIN, RST, SYN

CLIENT, BROKER = ("10.0.0.1", 50000), ("10.0.0.2", 9092)
DATA = b"\x01\x02\x03\x04\x05"  # of a packet that is nothing
_START_NS = 1_700_000_000_000_000_000


def ipv4(source, target, tcp, total=None):
    """An IPv4 packet; its checksum is not looked at by anybody."""
    addresses = b"".join(bytes(map(int, host.split("."))) for host in (source, target))
    size = 20 + len(tcp) if total is None else total
    return pack(">BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 6, 0) + addresses + tcp


def ipv6(source, target, tcp, extensions=()):
    """An IPv6 packet between 16-byte addresses, with (kind, body) extension headers."""
    kinds = [kind for kind, _ in extensions] + [6]
    bodies = b"".join(
        bytes([following, len(body) // 8]) + body
        for (_, body), following in zip(extensions, kinds[1:], strict=True)
    )
    payload = bodies + tcp
    front = pack(">IHBB", 6 << 28, len(payload), kinds[0], 64)
    return front + source + target + payload


def ethernet(packet, tags=()):
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    return bytes(12) + b"".join(pack(">HH", *tag) for tag in tags) + pack(">H", kind) + packet


def pcap(packets, link_type=ETHERNET, order="<", magic=0xA1B2C3D4, snap=262144):
    """A pcap file of (time in ns, bytes[, size on the wire])."""
    unit_ns = 1 if magic == 0xA1B23C4D else 1000
    parts = [pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link_type)]
    for time_ns, data, *size in packets:
        seconds, fraction = divmod(time_ns, 10**9)
        sizes = (len(data), size[0] if size else len(data))
        parts.append(pack(order + "IIII", seconds, fraction // unit_ns, *sizes) + data)
    return b"".join(parts)


def block(kind, body, order="<"):
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return pack(order + "II", kind, size) + body + pack(order + "I", size)


def section(order="<"):
    """The block that a pcapng file begins with."""
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code, value, order="<"):
    return pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(link_type, options=b"", order="<", snap=0):
    return block(1, pack(order + "HHI", link_type, 0, snap) + options, order)


def enhanced(number, ticks, data=DATA, order="<"):
    """The block of one packet, cut by a byte, from the interface with this number."""
    sizes = (number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data) + 1)
    return block(6, pack(order + "IIIII", *sizes) + data + bytes(-len(data) % 4), order)


def tcp(source, target, seq, ack, flags, payload):
    return pack(">HHIIBBHHH", source, target, seq, ack, 0x50, flags, 65535, 0, 0) + payload


class Talk:
    """A connection between CLIENT and BROKER that writes its packets down."""

    def __init__(self, wrap=ethernet, seqs=(1000, 5000), client=CLIENT, broker=BROKER):
        self.packets = []
        self.wrap = wrap
        self.ends = (client, broker)
        self.seqs = list(seqs)
        self.time_ns = _START_NS

    def packet(self, side, flags=ACK, payload=b"", seq=None, keep=None):
        """One packet from the client (0) or the broker (1); `keep`: bytes of it captured."""
        (source, port), (target, other) = self.ends[side], self.ends[1 - side]
        own = self.seqs[side] if seq is None else seq
        ack = self.seqs[1 - side] & 0xFFFFFFFF
        segment = tcp(port, other, own & 0xFFFFFFFF, ack, flags, payload)
        data = self.wrap(ipv4(source, target, segment))
        self.time_ns += 1_000_000
        self.packets.append((self.time_ns, data[:keep], len(data)))

    def open(self):
        self.packet(0, SYN)
        self.seqs[0] += 1
        self.packet(1, SYN | ACK)
        self.seqs[1] += 1
        return self

    def say(self, side, payload, pieces=1 << 20):
        """Bytes in segments of at most `pieces`."""
        for start in range(0, len(payload), pieces):
            part = payload[start : start + pieces]
            self.packet(side, payload=part)
            self.seqs[side] += len(part)
        return self

    def lose(self, side, payload):
        """Bytes that were sent, and not captured."""
        self.seqs[side] += len(payload)
        return self

    def close(self, *, reset=False):
        self.packet(0, RST if reset else FIN | ACK)
        if not reset:
            self.packet(1, FIN | ACK)
        return self

    def pcap(self, **options):
        return pcap(self.packets, **options)


def read(data, ports=(), limits=None):
    """(messages, notes) of a capture in bytes."""
    items = list(read_messages(open_capture(io.BytesIO(data)), ports, limits))
    messages = [item for item in items if isinstance(item, Message)]
    return messages, [item for item in items if isinstance(item, Note)]
