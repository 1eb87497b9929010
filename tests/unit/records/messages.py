"""Messages of magic 0 and 1 made by hand, sound or not, and what is read of them."""

from __future__ import annotations

import zlib

import pytest

from pyspark_kafkaproto.records import lz4_header
from pyspark_kafkaproto.records.compression import GZIP, LZ4, SNAPPY, compress
from pyspark_kafkaproto.records.layout import INT64_MAX
from tests.examples import first
from tests.unit.records.batches import rows_of

LOG_APPEND_TIME = 0x08
MAGICS = pytest.mark.parametrize("magic", first(1, [1, 0]))
CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
LARGEST_MS = INT64_MAX // 1000


def offsets(decoded) -> list[int]:
    return [row.offset for row in rows_of(decoded)]


def values(decoded) -> list[bytes]:
    return [row.value for row in rows_of(decoded)]


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    *,
    timestamp_ms: int = 0,
    attributes: int = 0,
) -> bytes:
    """One message; magic 0 has no timestamp."""
    timestamp = timestamp_ms.to_bytes(8, signed=True) if magic else b""
    content = timestamp + field(key) + field(value)
    return sealed_message(offset, bytes([magic, attributes]) + content)


def field(content: bytes | None) -> bytes:
    """A key or value behind its size."""
    return b"\xff" * 4 if content is None else len(content).to_bytes(4) + content


def sealed_message(offset: int, rest: bytes, length: int | None = None) -> bytes:
    """A message of everything behind its CRC, with the right CRC and, if not given, length."""
    length = 4 + len(rest) if length is None else length
    front = offset.to_bytes(8, signed=True) + length.to_bytes(4, signed=True)
    return front + zlib.crc32(rest).to_bytes(4) + rest


def wrapper(
    magic: int,
    offset: int,
    messages: bytes,
    *,
    codec: int,
    timestamp_ms: int = 0,
    attributes: int = 0,
    key: bytes | None = None,
) -> bytes:
    """A message around others, compressed as clients of its time did it."""
    content = compress(codec, messages)
    if codec == LZ4 and magic == 0:
        content = with_old_checksum(content)
    return message(
        magic, offset, content, key, timestamp_ms=timestamp_ms, attributes=attributes | codec
    )


def with_old_checksum(frame: bytes) -> bytes:
    """An LZ4 frame whose header checksum covers the magic number too (KAFKA-3160)."""
    return frame[:6] + bytes([lz4_header.header_checksum(frame[:6])]) + frame[7:]


def message_set(magic: int, offsets, **options) -> bytes:
    """Messages at some offsets, each with a value that names it."""
    return b"".join(message(magic, offset, b"v%d" % offset, **options) for offset in offsets)
