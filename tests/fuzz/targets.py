"""What is fuzzed: each target takes any bytes and raises only when a law is broken.

The first bytes of an input choose how it is read, the others are read. `batch` has whole blocks,
`codec` what stands inside a sound header (a stream for a decompressor, or records that are
compressed here), `made` blocks that a recipe makes, `snap` what snappy compresses, `message` bodies
of any API in any version, `frame` a connection's two directions.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.messages import find_api, request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.records import layout
from pyspark_kafkaproto.records.compression import SNAPPY, compress, decompress
from pyspark_kafkaproto.records.encoding import sealed
from pyspark_kafkaproto.wire import frame
from pyspark_kafkaproto.wire.schema import decode, encode
from tests.fuzz.captured import capture
from tests.fuzz.made import block_of
from tests.fuzz.oracle import assert_alike, options_of
from tests.unit.records import messages as old
from tests.unit.records.batches import raw_batch
from tests.unit.records.packing import packed
from tests.unit.records.snappy import blocks_of, unpacked

CHOICE_BYTES = 3
FRAME_LIMIT_BYTES = 1 << 16
SNAP_BYTES = 80 << 10  # two blocks and more


def batch(data: bytes) -> None:
    """A block of batches and messages, the checksum of its first one made right."""
    choice, block = data[:CHOICE_BYTES], data[CHOICE_BYTES:]
    if len(choice) == CHOICE_BYTES:
        assert_alike(with_right_crc(block), **options_of(choice))


def with_right_crc(block: bytes) -> bytes:
    """`block` with the checksum of the first batch, if that is whole."""
    if len(block) <= layout.MAGIC_POS:
        return block
    stop = layout.LOG_OVERHEAD + int.from_bytes(block[8:12])
    if block[layout.MAGIC_POS] == layout.MAGIC_V2 and layout.HEADER_SIZE <= stop <= len(block):
        return sealed(block[:stop]) + block[stop:]
    if block[layout.MAGIC_POS] < layout.MAGIC_V2 and layout.MAGIC_POS < stop <= len(block):
        crc = zlib.crc32(block[layout.MAGIC_POS : stop])
        return block[:12] + crc.to_bytes(4) + block[layout.MAGIC_POS :]
    return block


def codec(data: bytes) -> None:
    """The content of one batch or message that is sound in all else."""
    found = codec_block(data)
    if found is not None:
        assert_alike(found[0], **options_of(data[:CHOICE_BYTES]))


def codec_block(data: bytes) -> tuple[bytes, int] | None:
    """The batch or message that an input of `codec` means, and where its content begins."""
    kind, rest = data[CHOICE_BYTES : CHOICE_BYTES + 2], data[CHOICE_BYTES + 2 :]
    if len(kind) < 2:
        return None
    number = 1 + kind[0] % 4
    magic = (2, 2, 1, 0)[kind[0] >> 2 & 3]
    is_plain = bool(kind[0] & 0x10) and not (magic < 2 and number == 4)
    stream = compress(number, rest) if is_plain else rest
    if magic == layout.MAGIC_V2:
        attributes = number | kind[0] & layout.CONTROL
        block = raw_batch(
            stream, kind[1], attributes=attributes, last_offset_delta=100, producer_id=1
        )
    else:
        attributes = number | kind[0] >> 2 & old.LOG_APPEND_TIME
        block = old.message(magic, kind[1], stream, attributes=attributes)
    return block, len(block) - len(stream)


def made(data: bytes) -> None:
    """A block that follows a recipe."""
    if len(data) > CHOICE_BYTES:
        assert_alike(block_of(data[CHOICE_BYTES:]), **options_of(data[:CHOICE_BYTES]))


def snap(data: bytes) -> None:
    """What the native snappy makes of a content, which the input says how to repeat."""
    content, stream = packed(repeating(data))
    assert b"".join(unpacked(block) for block in blocks_of(stream)) == content
    assert bytes(decompress(SNAPPY, memoryview(stream), len(content))) == content


def repeating(data: bytes) -> bytes:
    """New bytes, and those that stood so far before, by turns as `data` has it."""
    out = bytearray()
    pos = 0
    while pos < len(data) and len(out) < SNAP_BYTES:
        kind, pos = data[pos], pos + 1
        if kind < 0x80:
            out += data[pos : pos + kind]
            pos += kind
            continue
        distance, pos = 1 + int.from_bytes(data[pos : pos + 2]), pos + 2
        size = (kind & 0x3F) << (6 if kind & 0x40 else 0)
        if distance <= len(out):
            again = bytes(out[-distance:])
            out += (again * (size // len(again) + 1))[:size]
    return bytes(out)


# --- messages


@cache
def shapes() -> list[tuple[Any, int]]:
    """Every message of every API in every version, and what consumers put into some of them."""
    of_apis = (get(api.key) for api in APIS for get in (request_class, response_class))
    return [
        (cls, version)
        for cls in (*of_apis, ConsumerProtocolAssignment, ConsumerProtocolSubscription)
        for version in range(cls.VERSIONS.min, cls.VERSIONS.max + 1)
    ]


def message(data: bytes) -> None:
    """The body of one message; what is read can be written, and reads the same again."""
    if len(data) >= 2:
        cls, version = shapes()[int.from_bytes(data[:2]) % len(shapes())]
        read_twice(
            lambda body: decode(cls, body, version), lambda read: encode(read, version), data[2:]
        )


def read_twice(
    read: Callable[[bytes], Any], write: Callable[[Any], bytes], data: bytes
) -> Any | None:
    """What `read` makes of `data`; None where it refuses."""
    try:
        first = read(data)
    except RemoteProtocolError:
        return None
    again = read(write(first))
    assert again == first or repr(again) == repr(first), f"{first!r}\n{again!r}"  # NaN
    return first


def frame_stream(data: bytes) -> None:
    """A connection: some requests, then responses that belong to them."""
    if not data:
        return
    payloads = list(_payloads(memoryview(data)[1:]))
    asked = data[0] % 8
    pending: dict[int, tuple[Any, int]] = {}
    for payload in payloads[:asked]:
        _read_request(payload, pending)
    for payload in payloads[asked:]:
        _read_response(payload, pending)


def _payloads(stream: memoryview) -> Any:
    pos = 0
    while len(stream) - pos >= frame.SIZE_PREFIX_BYTES:
        try:
            size = frame.frame_size(stream[pos : pos + 4], FRAME_LIMIT_BYTES)
        except RemoteProtocolError:
            return
        pos += frame.SIZE_PREFIX_BYTES
        if size > len(stream) - pos:
            return
        yield bytes(stream[pos : pos + size])
        pos += size


def _read_request(payload: bytes, pending: dict[int, tuple[Any, int]]) -> None:
    try:
        key, version, correlation_id = frame.peek_request(payload)
    except RemoteProtocolError:
        return
    if find_api(key) is None:
        return
    cls = request_class(key)
    read = read_twice(
        lambda data: frame.decode_request(cls, data),
        lambda read: frame.encode_request(
            read[1], read[0].api_version, read[0].correlation_id, read[0].client_id
        )[frame.SIZE_PREFIX_BYTES :],
        payload,
    )
    if read is not None:
        pending[correlation_id] = (response_class(key), version)


def _read_response(payload: bytes, pending: dict[int, tuple[Any, int]]) -> None:
    found = pending.pop(frame.peek_correlation_id(payload), None)
    if found is None:
        return
    cls, version = found
    read_twice(
        lambda data: frame.decode_response(cls, data, version),
        lambda read: frame.encode_response(read[1], version, read[0])[frame.SIZE_PREFIX_BYTES :],
        payload,
    )


TARGETS: dict[str, Callable[[bytes], None]] = {
    "batch": batch,
    "codec": codec,
    "made": made,
    "snap": snap,
    "message": message,
    "frame": frame_stream,
    "capture": capture,
}
