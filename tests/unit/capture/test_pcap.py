"""Capture files: every magic, sections and interfaces, and files that end too early."""

import io
from struct import pack

import pytest

from pyspark_kafkaproto.capture import open_capture
from pyspark_kafkaproto.capture.link import ETHERNET, RAW
from pyspark_kafkaproto.errors import UnreadableCapture
from tests.unit.capture.wire import DATA, block, enhanced, interface, option, pcap, section

TIME_NS = 1_700_000_000_123_456_789


def packets(data):
    reader = open_capture(io.BytesIO(data))
    return list(reader), reader.damage


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("magic", "rounding"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_all_magics_of_pcap(order, magic, rounding):
    data = pcap([(TIME_NS, DATA, 9)], link_type=RAW, order=order, magic=magic)
    ((time_ns, link_type, read, size, *_),), damage = packets(data)
    assert (time_ns, link_type) == (TIME_NS - TIME_NS % rounding, RAW)
    assert (read, size, damage) == (DATA, 9, "")


@pytest.mark.parametrize("order", "<>")
def test_pcapng_with_several_interfaces_and_their_clocks(order):
    nano, binary = option(9, b"\x09", order), option(9, bytes([0x80 | 10]), order)
    shifted = option(2, b"eth0", order) + option(14, pack(order + "q", 100), order)
    data = b"".join(
        (
            section(order),
            block(0xBAD, b"unknown!", order),
            interface(ETHERNET, nano + option(0, b"", order), order),
            interface(RAW, binary + shifted, order),
            enhanced(0, TIME_NS, order=order),
            enhanced(1, 3 * 1024 + 512, order=order),
            section(order),
            interface(RAW, b"", order),
            enhanced(0, TIME_NS // 1000, order=order),
        )
    )
    found, damage = packets(data)
    assert damage == ""
    assert [(packet.time_ns, packet.link_type) for packet in found] == [
        (TIME_NS, ETHERNET),
        (103_500_000_000, RAW),
        (TIME_NS // 1000 * 1000, RAW),
    ]
    assert {(packet.data, packet.size_bytes) for packet in found} == {(DATA, 6)}


def test_simple_and_old_packet_blocks():
    old = pack("<HHIIII", 0, 0, 0, 7, 5, 5) + DATA
    data = section() + interface(RAW, snap=3) + block(2, old) + block(3, pack("<I", 5) + DATA)
    found, damage = packets(data)
    assert [(packet.time_ns, packet.data) for packet in found] == [(7000, DATA), (7000, DATA[:3])]
    assert damage == ""


def test_sections_of_both_byte_orders_in_one_file():
    parts = [section(o) + interface(RAW, order=o) + enhanced(0, 5, order=o) for o in "<>"]
    assert len(packets(b"".join(parts))[0]) == 2


@pytest.mark.parametrize(
    "whole",
    [pcap([(TIME_NS, DATA)] * 2), section() + interface(RAW) + enhanced(0, 1) + enhanced(0, 2)],
    ids=["pcap", "pcapng"],
)
def test_a_file_that_ends_inside_a_packet_gives_what_it_holds_and_says_so(whole):
    found, damage = packets(whole[:-3])
    assert len(found) == 1
    assert "the file ends inside" in damage


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (section() + enhanced(3, 1), "interface 3"),
        (section() + block(6, b"abcd"), "a packet block of 4 bytes"),
        (section() + pack("<II", 6, 13) + bytes(20), "a block of 13 bytes"),
        (section() + pack("<II", 6, 1 << 30) + bytes(20), "a block of 1073741824 bytes"),
        (section() + pack("<II", 77, 1 << 30) + bytes(20), "ends inside a block"),
        (pcap([])[:24] + pack("<IIII", 0, 0, 1 << 30, 0), "a packet of 1073741824 bytes"),
    ],
)
def test_damage_ends_the_reading_and_is_named(data, text):
    found, damage = packets(data)
    assert found == []
    assert text in damage


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty"),
        (b"\x1f\x8b\x08\x00", "compressed"),
        (b"GIF89a" + bytes(30), "47 49 46 38"),
        (pcap([])[:10], "ends inside its header"),
    ],
)
def test_what_is_no_capture_is_refused_with_what_it_looks_like(data, text):
    with pytest.raises(UnreadableCapture, match=text):
        open_capture(io.BytesIO(data), "trace.pcap")


def test_a_pipe_gives_its_packets_as_they_come():
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.pieces = [pcap([(TIME_NS, DATA)]), pcap([(TIME_NS, DATA)])[24:]]

        def read1(self, _size):
            return self.pieces.pop(0) if self.pieces else b""

    pipe = Pipe()
    reader = iter(open_capture(pipe))
    assert next(reader).data == DATA
    assert len(pipe.pieces) == 1
    assert len(list(reader)) == 1


@pytest.mark.slow
def test_the_number_of_interfaces_is_bounded():
    data = section() + interface(RAW) * 65_537
    read, damage = packets(data + enhanced(0, 1))
    assert (read, damage) == ([], "a section with more than 65536 interfaces")
    read, damage = packets(section() + interface(RAW) * 65_536 + enhanced(65_535, 1))
    assert (len(read), damage) == (1, "")
