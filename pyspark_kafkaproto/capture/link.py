"""From the bytes of a link layer to one TCP segment.

Ethernet with VLAN tags, Linux cooked captures 1 and 2, loopback, raw IP; IPv4 and IPv6 with its
extension headers. What is no TCP is None. IP fragments are not put together: TCP avoids them, and
a first fragment is read like a packet whose end was not captured.
Formats: tcpdump.org's list of link types, RFC 791, RFC 8200, RFC 9293.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

NULL, ETHERNET, RAW, LOOP, SLL, IPV4, IPV6, SLL2 = 0, 1, 101, 108, 113, 228, 229, 276
_RAW_TYPES = frozenset({RAW, 12, 14, IPV4, IPV6})
LINK_TYPES = frozenset({NULL, ETHERNET, LOOP, SLL, SLL2}) | _RAW_TYPES

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

ETHERTYPE_IPV4, _ETHERTYPE_IPV6 = 0x0800, 0x86DD
_VLAN_TYPES = frozenset({0x8100, 0x88A8, 0x9100})
TCP = 6
_FRAGMENT = 44
_EXTENSIONS = frozenset({0, 43, 51, 60, 135, _FRAGMENT})  # AH (51) counts its length otherwise
_AUTHENTICATION = 51

_IPV4_FRONT = Struct(">BxHxxHxB")
_TCP_FRONT = Struct(">IIBB")
# Most packets: Ethernet, IPv4 without options, TCP. From the ethertype to the flags.
PLAIN = Struct(">HBxHxxHxBxx12sIIBB")
TYPE_POS, IP_POS, TCP_POS, PLAIN_STOP = 12, 14, 34, 48
PLAIN_IPV4, PLAIN_TCP = 0x45, 0x50  # their first byte; the least of the one with the header's size
FRAGMENT_OFFSET = 0x1FFF
# What Linux hands to a network card at once is less; beyond it, the size is damaged.
_UNCUT_BYTES_MAX = 1 << 20
NO_NAMES: Mapping[bytes, str] = {}
_MAPPED = bytes(10) + b"\xff\xff"  # in front of an IPv4 address among IPv6 ones


class Segment(NamedTuple):
    """One TCP segment.

    flow: addresses and ports of sender and receiver, as they stand in the packet.
    missing_bytes: how much of its payload was not captured, at its end.
    """

    flow: bytes
    seq: int
    ack: int
    flags: int
    payload: bytes
    missing_bytes: int


def tcp_segment(link_type: int, data: bytes, size_bytes: int = 0) -> Segment | None:
    """The segment in a packet; None for anything else, and for one that is cut in its headers.

    Args:
        link_type: what `data` begins with.
        data: the packet, as much of it as was captured.
        size_bytes: of all of it, where IP does not say; 0: nothing was cut.
    """
    if link_type == ETHERNET and len(data) >= PLAIN_STOP:
        plain = _from_plain(data)
        if plain is not None:
            return plain
    try:
        pos = 14 if link_type == ETHERNET else _ip_position(link_type, data)
        if link_type == ETHERNET and data[12:14] not in _PLAIN_ETHERNET:
            pos = _behind_tags(data, 12, 14)
        if pos < 0:
            return None
        version = data[pos] >> 4
        if version == 4:
            return _from_ipv4(data, pos, size_bytes)
        return _from_ipv6(data, pos, size_bytes) if version == 6 else None
    except (IndexError, ValueError):
        return None


def _from_plain(data: bytes) -> Segment | None:
    """The same at one go, where the headers are the usual ones; None: look closely."""
    kind, first, total, fragment, protocol, flow, seq, ack, offset, flags = PLAIN.unpack_from(
        data, TYPE_POS
    )
    if kind != ETHERTYPE_IPV4 or first != PLAIN_IPV4 or protocol != TCP:
        return None
    start, stop = TCP_POS + (offset >> 4) * 4, IP_POS + total
    if fragment & FRAGMENT_OFFSET or offset < PLAIN_TCP or start > stop:
        return None
    payload = data[start:stop]
    return Segment(flow, seq, ack, flags, payload, stop - start - len(payload))


_PLAIN_ETHERNET = frozenset({b"\x08\x00", b"\x86\xdd"})


def _ip_position(link_type: int, data: bytes) -> int:
    """Where the IP header begins; -1 where there is none."""
    if link_type in _RAW_TYPES:
        return 0
    if link_type in {NULL, LOOP}:
        return 4  # the address family has a number of its own on every system: the header tells
    if link_type == SLL:
        return _behind_tags(data, 14, 16)
    if link_type == SLL2:
        return _behind_tags(data, 0, 20)
    return -1


def _behind_tags(data: bytes, pos: int, behind: int) -> int:
    """The position behind the VLAN tags that an ethertype at `pos` announces, from `behind` on."""
    kind = int.from_bytes(data[pos : pos + 2])
    while kind in _VLAN_TYPES:
        kind = int.from_bytes(data[behind + 2 : behind + 4])
        behind += 4
    return behind if kind in {ETHERTYPE_IPV4, _ETHERTYPE_IPV6} else -1


def _from_ipv4(data: bytes, pos: int, size_bytes: int) -> Segment | None:
    first, total, fragment, protocol = _front_of_ipv4(data, pos)
    if protocol != TCP or fragment & FRAGMENT_OFFSET:
        return None
    tcp = pos + (first & 0x0F) * 4
    stop = pos + total if total else _stop_unsaid(data, size_bytes)
    return _segment(data, tcp, stop, data[pos + 12 : pos + 20])


def _stop_unsaid(data: bytes, size_bytes: int) -> int:
    """Where a packet ends whose IP has no length yet: the network card will cut it."""
    return size_bytes if len(data) < size_bytes <= _UNCUT_BYTES_MAX else len(data)


def _front_of_ipv4(data: bytes, pos: int) -> tuple[int, int, int, int]:
    if len(data) < pos + 20:
        raise ValueError("cut")
    first, total, fragment, protocol = _IPV4_FRONT.unpack_from(data, pos)
    return first, total, fragment, protocol


def _from_ipv6(data: bytes, pos: int, size_bytes: int) -> Segment | None:
    size = int.from_bytes(data[pos + 4 : pos + 6])
    stop = pos + 40 + size if size else _stop_unsaid(data, size_bytes)
    addresses = data[pos + 8 : pos + 40]
    kind = data[pos + 6]
    pos += 40
    while kind in _EXTENSIONS:
        if kind == _FRAGMENT and int.from_bytes(data[pos + 2 : pos + 4]) & 0xFFF8:
            return None
        length = data[pos + 1]
        step = (length + 2) * 4 if kind == _AUTHENTICATION else (length + 1) * 8
        kind, pos = data[pos], pos + (8 if kind == _FRAGMENT else step)
    return _segment(data, pos, stop, addresses) if kind == TCP else None


def _segment(data: bytes, tcp: int, stop: int, addresses: bytes) -> Segment | None:
    if len(data) < tcp + 14:
        return None
    seq, ack, offset, flags = _TCP_FRONT.unpack_from(data, tcp + 4)
    start = tcp + (offset >> 4) * 4
    if start < tcp + 20 or start > stop:
        return None
    payload = data[start:stop]
    flow = addresses + data[tcp : tcp + 4]
    return Segment(flow, seq, ack, flags, payload, stop - start - len(payload))


def reverse(flow: bytes) -> bytes:
    """The same connection seen from the other end."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]


def endpoints(flow: bytes, names: Mapping[bytes, str] = NO_NAMES) -> tuple[str, str]:
    """Sender and receiver as `host:port`; `names` are those of made-up addresses."""
    size = (len(flow) - 4) // 2
    hosts = [_host(flow[:size], names), _host(flow[size : 2 * size], names)]
    ports = [int.from_bytes(flow[-4:-2]), int.from_bytes(flow[-2:])]
    return f"{hosts[0]}:{ports[0]}", f"{hosts[1]}:{ports[1]}"


def _host(address: bytes, names: Mapping[bytes, str]) -> str:
    from ipaddress import ip_address  # noqa: PLC0415  takes a while, and a capture may have no TCP

    if name := names.get(address.removeprefix(_MAPPED)):
        return name
    host = ip_address(address)
    return f"[{host}]" if host.version == 6 else str(host)
