"""Snappy's format byte by byte, stricter than any reader: what our streams are held to."""

from __future__ import annotations

from typing import NamedTuple

HEADER = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2


class Copy(NamedTuple):
    distance: int
    size: int


def blocks_of(stream: bytes) -> list[bytes]:
    """The raw blocks of snappy-java's stream, nothing around them."""
    assert stream.startswith(HEADER)
    pos = len(HEADER)
    blocks = []
    while pos < len(stream):
        size = int.from_bytes(stream[pos : pos + 4])
        pos += 4 + size
        assert size > 0
        assert pos <= len(stream)
        blocks.append(stream[pos - size : pos])
    return blocks


def elements_of(block: bytes) -> tuple[int, list[bytes | Copy]]:
    """The declared size, and literals and copies in their order; none takes a byte too many."""
    declared = shift = pos = 0
    while True:
        declared |= (block[pos] & 0x7F) << shift
        shift += 7
        pos += 1
        if block[pos - 1] < 0x80:
            break
    assert pos == 1 or block[pos - 1]
    elements: list[bytes | Copy] = []
    while pos < len(block):
        tag, kind = block[pos] >> 2, block[pos] & 3
        high = block[pos] >> 5
        pos += 1
        if kind == 0:
            width = max(0, tag - 59)
            size = 1 + (int.from_bytes(block[pos : pos + width], "little") if width else tag)
            assert not width or size > (60, 256)[width - 1]
            pos += width + size
            assert pos <= len(block)
            elements.append(block[pos - size : pos])
        elif kind == 1:
            elements.append(Copy(high << 8 | block[pos], 4 + (tag & 7)))
            pos += 1
        else:
            assert kind == 2
            copy = Copy(int.from_bytes(block[pos : pos + 2], "little"), 1 + tag)
            assert copy.distance >= 2048 or not 4 <= copy.size <= 11  # two bytes would do
            elements.append(copy)
            pos += 2
    assert pos == len(block)
    return declared, elements


def unpacked(block: bytes) -> bytes:
    """What one raw block holds."""
    declared, elements = elements_of(block)
    out = bytearray()
    for element in elements:
        if isinstance(element, bytes):
            out += element
            continue
        assert 0 < element.distance <= len(out)
        again = bytes(out[-element.distance :])
        out += (again * (element.size // len(again) + 1))[: element.size]
    assert len(out) == declared
    return bytes(out)
