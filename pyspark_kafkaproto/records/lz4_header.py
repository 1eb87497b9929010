"""The header checksum of LZ4 frames in messages of magic 0, which Kafka's clients got wrong.

They summed the frame's magic number along with its descriptor (KAFKA-3160), and readers of magic 0
never looked at the sum. LZ4's library does look, so it is given the right one.
Format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md; XXH32 for under 16 bytes.
"""

from __future__ import annotations

from typing import Final

_DESCRIPTOR_POS: Final = 4  # behind the magic number
_CONTENT_SIZE: Final = 0x08  # flag: eight bytes more
_DICTIONARY_ID: Final = 0x01  # flag: four bytes more
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK: Final = 0xFFFFFFFF


def repaired(frame: memoryview) -> memoryview:
    """`frame` with the right header checksum; itself if it has that, or is too short for one."""
    if len(frame) <= _DESCRIPTOR_POS:
        return frame
    flags = frame[_DESCRIPTOR_POS]
    size = 2 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY_ID else 0)
    pos = _DESCRIPTOR_POS + size
    if pos >= len(frame):
        return frame
    checksum = header_checksum(frame[_DESCRIPTOR_POS:pos])
    if frame[pos] == checksum:
        return frame
    copy = bytearray(frame)
    copy[pos] = checksum
    return memoryview(copy)


def header_checksum(descriptor: bytes | memoryview) -> int:
    """The byte behind a descriptor: the second lowest of its XXH32.

    Args:
        descriptor: under 16 bytes.
    """
    return xxh32(bytes(descriptor)) >> 8 & 0xFF


def xxh32(data: bytes) -> int:
    """XXH32 of under 16 bytes, with seed 0."""
    total = _PRIMES[4] + len(data)
    words_end = len(data) // 4 * 4
    for pos in range(0, words_end, 4):
        total += int.from_bytes(data[pos : pos + 4], "little") * _PRIMES[2]
        total = _rotated(total, 17) * _PRIMES[3]
    for byte in data[words_end:]:
        total = _rotated(total + byte * _PRIMES[4], 11) * _PRIMES[0]
    total &= _MASK
    total = (total ^ total >> 15) * _PRIMES[1] & _MASK
    total = (total ^ total >> 13) * _PRIMES[2] & _MASK
    return total ^ total >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _MASK
    return (number << bits | number >> (32 - bits)) & _MASK
