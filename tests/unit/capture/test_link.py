"""Link layers and IP: the same segment comes out of every wrapping."""

import random
from struct import pack

import pytest

from pyspark_kafkaproto.capture import link
from tests.unit.capture.wire import ethernet, ipv4, ipv6, tcp

SEGMENT = tcp(50000, 9092, 7, 8, link.ACK, b"payload")
V4 = ipv4("10.0.0.1", "10.0.0.2", SEGMENT)
V6_ADDRESSES = bytes(15) + b"\x01", bytes(15) + b"\x02"
V6 = ipv6(*V6_ADDRESSES, SEGMENT)
VLAN, OUTER_VLAN = (0x8100, 5), (0x88A8, 6)


def tagged_sll2(frame):
    """Of an Ethernet frame: the first ethertype stands in front of all, its tag behind the rest."""
    return frame[12:14] + bytes(18) + frame[14:]


@pytest.mark.parametrize("packet", [V4, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize(
    ("link_type", "wrap"),
    [
        (link.ETHERNET, ethernet),
        (link.ETHERNET, lambda packet: ethernet(packet, [VLAN])),
        (link.ETHERNET, lambda packet: ethernet(packet, [OUTER_VLAN, VLAN])),
        (link.ETHERNET, lambda packet: ethernet(packet) + b"trailer of the frame"),
        (link.SLL, lambda packet: bytes(14) + ethernet(packet)[12:]),
        (link.SLL, lambda packet: bytes(14) + ethernet(packet, [VLAN])[12:]),
        (link.SLL2, lambda packet: ethernet(packet)[12:14] + bytes(18) + packet),
        (link.SLL2, lambda packet: tagged_sll2(ethernet(packet, [VLAN]))),
        (link.SLL2, lambda packet: tagged_sll2(ethernet(packet, [VLAN, VLAN]))),
        (link.NULL, lambda packet: pack("<I", 2) + packet),
        (link.LOOP, lambda packet: pack(">I", 24) + packet),
        (link.RAW, bytes),
        (12, bytes),
        (link.IPV4, bytes),
        (link.IPV6, bytes),
    ],
)
def test_every_link_type(link_type, wrap, packet):
    segment = link.tcp_segment(link_type, wrap(packet))
    assert segment[1:] == (7, 8, link.ACK, b"payload", 0)
    ends = link.endpoints(segment.flow)
    assert [end.rpartition(":")[2] for end in ends] == ["50000", "9092"]
    assert link.endpoints(link.reverse(segment.flow)) == ends[::-1]


@pytest.mark.slow
def test_the_short_way_says_what_the_long_way_says():
    """Ethernet and IPv4 as usual are read at one go: damaged headers too, or not at all."""
    rng = random.Random(20261122)
    found = 0
    for _ in range(5000):
        data = bytearray(ethernet(V4))
        for _ in range(rng.choice([0, 1, 2])):
            data[rng.randrange(14, len(data))] = rng.choice([0, 1, 0x45, 0x50, 0x7F, 0xFF])
        frame = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        segment = link.tcp_segment(link.ETHERNET, frame)
        assert segment == link.tcp_segment(link.RAW, frame[14:])
        found += segment is not None
    assert 1000 < found < 4000


def test_addresses_are_shown_as_people_write_them():
    assert link.endpoints(link.tcp_segment(link.RAW, V4).flow) == (
        "10.0.0.1:50000",
        "10.0.0.2:9092",
    )
    assert link.endpoints(link.tcp_segment(link.RAW, V6).flow) == ("[::1]:50000", "[::2]:9092")


def test_extension_headers_of_ipv6_are_passed_over():
    hop, routing = (0, bytes(6)), (43, bytes(14))
    packet = ipv6(*V6_ADDRESSES, SEGMENT, [hop, routing])
    assert link.tcp_segment(link.RAW, packet).payload == b"payload"


def test_what_the_capture_cut_off_is_counted():
    segment = link.tcp_segment(link.RAW, V4[:-3])
    assert (segment.payload, segment.missing_bytes) == (b"payl", 3)


def test_a_packet_whose_length_is_left_to_the_card():
    segment = link.tcp_segment(link.RAW, ipv4("10.0.0.1", "10.0.0.2", SEGMENT, total=0))
    assert (segment.payload, segment.missing_bytes) == (b"payload", 0)


@pytest.mark.parametrize("packet", [V4[:2] + bytes(2) + V4[4:], V6[:4] + bytes(2) + V6[6:]])
@pytest.mark.parametrize(("more", "missing"), [(0, 3), (300_000, 300_003), (1 << 30, 0)])
def test_one_that_was_cut_ends_where_the_capture_says(packet, more, missing):
    """A size that no packet can have says nothing."""
    segment = link.tcp_segment(link.RAW, packet[:-3], len(packet) + more)
    assert (segment.payload, segment.missing_bytes) == (b"payl", missing)


@pytest.mark.parametrize(
    "packet",
    [
        V4[:9] + b"\x11" + V4[10:],  # UDP
        V4[:6] + b"\x00\x10" + V4[8:],  # a later fragment
        b"\x55" + V4[1:],  # no version of IP
        V4[:32] + b"\x10" + V4[33:],  # a TCP header of 4 bytes
        b"",
        ipv6(*V6_ADDRESSES, SEGMENT, [(44, b"\x00\x08" + bytes(4))]),
    ],
)
def test_what_is_no_segment_is_none(packet):
    assert link.tcp_segment(link.RAW, packet) is None


@pytest.mark.parametrize("packet", [V4, V6])
def test_a_packet_cut_in_its_headers_is_none(packet):
    for size in range(len(packet) - len(b"payload") - 6):
        assert link.tcp_segment(link.RAW, packet[:size]) is None
