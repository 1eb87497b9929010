"""Many inputs from one: what the fuzzer gives is changed in 64 ways, and each of them is read.

One call of the fuzzer costs more than reading a small batch. So these targets ask the law alone
(columns or CorruptRecords, within time and memory) and leave the comparison with the reference to
`targets.py`, whose corpus they share: an input means the same there. What is made of an input
follows from it alone, so a find comes again. An execution is one call of a decoder on one changed
input; nothing else is counted.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from pyspark_kafkaproto.errors import CorruptRecords, RemoteProtocolError
from pyspark_kafkaproto.records import _kernel, layout
from pyspark_kafkaproto.wire.schema import decode
from tests.fuzz.campaign import FLURRY
from tests.fuzz.cost import MaybeSlow, TooDear, assert_each_in_time, bounded
from tests.fuzz.made import block_of
from tests.fuzz.oracle import LIMIT_BYTES, assert_columns, options_of
from tests.fuzz.targets import CHOICE_BYTES, TARGETS, codec_block, shapes, with_right_crc

CHANGED = FLURRY - 1  # and the input itself
# A find that ends the process leaves no word of which one it was.
SHOWS = "KAFKAPROTO_FUZZ_SHOW" in os.environ

_EDGES = (
    *(
        value.to_bytes(4, signed=True)
        for value in (-(2**31), -2, -1, 0, 1, 2, 13, 14, 49, 61, 128, 255, 1 << 16, 2**31 - 1)
    ),
    b"\xff\xff\xff\x0f",  # as a varint: the largest, one too long, small ones
    b"\x80\x80\x80\x80",
    b"\x01\x01\x01\x01",
)


def changed(data: bytes, first: int = 0, *, may_resize: bool = True) -> Iterator[bytearray]:
    """`data` in many ways changed from the position `first` on."""
    draw = Random(zlib.crc32(data)).getrandbits
    span = len(data) - first
    for _ in range(CHANGED if span > 0 else 0):
        bits = draw(64)
        one = bytearray(data)
        _change(one, bits, first, span, may_resize=may_resize)
        if bits >> 62 == 0 and span > 8:  # a quarter of them twice
            _change(one, draw(64), first, len(one) - first, may_resize=may_resize)
        yield one


def _change(one: bytearray, bits: int, first: int, span: int, *, may_resize: bool) -> None:
    if span <= 0:
        return
    pos = first + (((bits >> 8 & 0xFFFF) * span) >> 16)
    kind = bits & 7
    if kind < 3:
        one[pos] ^= 1 << (bits >> 24 & 7)
    elif kind < 5:
        one[pos] = bits >> 24 & 0xFF
    elif kind == 5:
        edge = _EDGES[(bits >> 24 & 0xFF) % len(_EDGES)][: len(one) - pos]
        one[pos : pos + len(edge)] = edge
    elif not may_resize:
        one[pos] = (one[pos] + 1) & 0xFF
    else:
        _resize(one, bits, pos)


def _resize(one: bytearray, bits: int, pos: int) -> None:
    """Take a piece out, or put one in that stands elsewhere; half of the time the front knows."""
    size = 1 + (bits >> 24 & 15)
    if bits & 1:
        start = (bits >> 32 & 0xFFFF) * len(one) >> 16
        one[pos:pos] = one[start : start + size]
    else:
        del one[pos : pos + size]
    if bits >> 60 & 1 and len(one) > layout.HEADER_SIZE:
        one[8:12] = (len(one) - layout.LOG_OVERHEAD).to_bytes(4)


def read_all(inputs: Callable[[], Iterator[bytes | bytearray]], read: Callable[[Any], None]) -> int:
    """Read every input; how many there were."""
    count = 0
    one: bytes | bytearray = b""
    try:
        with bounded():
            for one in inputs():
                count += 1
                if SHOWS:
                    print(one.hex(), file=sys.stderr, flush=True)
                read(one)
    except MaybeSlow:
        assert_each_in_time(read, inputs())
    except TooDear:  # whichever it was, it is not the last one
        raise
    except BaseException:
        print(f"changed to {one.hex()}", file=sys.stderr)
        raise
    return count


# --- targets


def batch_flurry(data: bytes) -> int:
    """Blocks that differ a little from one; the last of them with a right checksum."""
    choice, block = data[:CHOICE_BYTES], data[CHOICE_BYTES:]
    if len(choice) < CHOICE_BYTES:
        return 0
    return _read_blocks(choice, block, 0, may_resize=True)


def codec_flurry(data: bytes) -> int:
    """What stands inside a sound header, changed."""
    found = codec_block(data)
    if found is None:
        return 0
    block, start = found
    is_batch = block[layout.MAGIC_POS] == layout.MAGIC_V2
    return _read_blocks(data[:CHOICE_BYTES], block, start, may_resize=is_batch)


def made_flurry(data: bytes) -> int:
    """Blocks that follow recipes, which differ a little."""
    choice, recipe = data[:CHOICE_BYTES], data[CHOICE_BYTES:]
    if not recipe:
        return 0
    block = block_of(recipe)
    return _read_each(choice, block, lambda: map(block_of, changed(recipe)))


def _read_blocks(choice: bytes, block: bytes, first: int, *, may_resize: bool) -> int:
    inputs = partial(changed, block, first, may_resize=may_resize)
    return _read_each(choice, with_right_crc(block), inputs)


def _read_each(
    choice: bytes, block: bytes, inputs: Callable[[], Iterator[bytes | bytearray]]
) -> int:
    """Read blocks that came of changes, whatever their checksums, and the one without any."""
    options = options_of(choice) | {"check_crcs": False, "batch_limit_bytes": LIMIT_BYTES}
    options["wanted"] = int(options["wanted"])
    decode_block = _kernel.decode

    def read(one: bytes | bytearray) -> None:
        try:
            decoded = decode_block(one, **options)
        except CorruptRecords:
            return
        assert decoded.max_batch_bytes <= LIMIT_BYTES + len(one)

    count = read_all(inputs, read)
    _read_in_full(block, options | {"check_crcs": True})
    return count + 1


def _read_in_full(block: bytes, options: dict[str, Any]) -> None:
    """The input itself: its columns are looked at, too."""
    try:
        decoded = _kernel.decode(block, **options)
    except CorruptRecords:
        return
    assert_columns(decoded, options["wanted"], len(block))


def message_flurry(data: bytes) -> int:
    """Bodies of one message, changed."""
    if len(data) < 3:
        return 0
    cls, version = shapes()[int.from_bytes(data[:2]) % len(shapes())]

    def read(one: bytes | bytearray) -> None:
        with suppress(RemoteProtocolError):
            decode(cls, one, version)

    body = data[2:]
    count = read_all(partial(changed, body), read)
    read(body)
    return count + 1


FLURRIES: dict[str, Callable[[bytes], int]] = {
    "batch-flurry": batch_flurry,
    "codec-flurry": codec_flurry,
    "made-flurry": made_flurry,
    "message-flurry": message_flurry,
}

ALL_TARGETS: dict[str, Callable[[bytes], int | None]] = {**TARGETS, **FLURRIES}
