"""Kernel and reference are one: same rows, or the same refusal at the same byte, for any bytes.

Law: any bytes give columns or CorruptRecords, never anything else.
"""

from __future__ import annotations

import os
import random
from ctypes import c_ubyte
from itertools import accumulate

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.arrow import COLUMN_NAMES, schema_for, to_record_batches
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import (
    Columns,
    NewRecord,
    _kernel,
    encode_batch,
    layout,
    reference,
)
from pyspark_kafkaproto.records.encoding import sealed, zigzag
from pyspark_kafkaproto.records.layout import CONTROL
from tests.examples import examples
from tests.unit.records.batches import raw_batch, raw_record
from tests.unit.records.messages import message, sealed_message, wrapper

SCHEMAS = {Columns.ALL: schema_for(COLUMN_NAMES), Columns.VALUE: schema_for(["value"])}
# The size and seed of the random schedule; KAFKAPROTO_MUTATIONS makes it as long as one likes.
MUTATIONS = int(os.environ.get("KAFKAPROTO_MUTATIONS", "4000"))
SEED = int(os.environ.get("KAFKAPROTO_SEED", "20240229"))


def outcome(implementation, block: bytes, **options):
    """What an implementation makes of a block, in a form that can be compared."""
    wanted = options.pop("wanted", Columns.ALL)
    try:
        decoded = implementation.decode(block, wanted=wanted, **options)
    except CorruptRecords as error:
        # A codec's library may name the same damage differently the next time.
        said = str(error).partition("cannot be decompressed")[:2]
        return type(error), said, error.pos, error.base_offset
    (batch,) = to_record_batches(decoded, "t", 0, SCHEMAS[wanted])
    batch.validate(full=True)
    facts = (
        decoded.rows, decoded.pos, decoded.next_offset, decoded.passed_over, decoded.batches,
        decoded.decompressed_bytes, decoded.max_batch_bytes, repr(decoded.aborted),
    )  # fmt: skip
    return facts, batch


def skimmed(implementation, block: bytes):
    try:
        return implementation.skim(block)
    except CorruptRecords as error:
        return type(error), str(error), error.pos, error.base_offset


def assert_alike(block: bytes, **options):
    pure = outcome(reference, block, **options)
    assert outcome(_kernel, block, **options) == pure
    assert skimmed(_kernel, block) == skimmed(reference, block)
    return pure


MARKERS = [b"\x00\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00\x07\x00\x09"]
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.binary(max_size=80), BYTES), max_size=4)
TIMESTAMPS = st.integers(-1, 2**45) | st.sampled_from([0, -1, 9223372036854775, -9223372036854775])


@st.composite
def batches(draw, base_offset: int) -> bytes:
    """Any batch that a broker could send."""
    count = draw(st.integers(0, 12))
    attributes = draw(st.sampled_from([0, 0x08, 0x10, 0x18, 0x30, 0x40]))
    keys = st.sampled_from(MARKERS) if attributes & CONTROL else BYTES
    gaps = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    records = [
        NewRecord(draw(BYTES), draw(keys), draw(TIMESTAMPS), draw(HEADERS), delta - 1)
        for delta in accumulate(gaps)
    ]
    return encode_batch(
        records,
        base_offset=base_offset,
        codec=draw(st.integers(0, 4)),
        attributes=attributes,
        last_offset_delta=sum(gaps) + draw(st.integers(0, 3)),
        producer_id=draw(st.integers(-1, 3)),
    )


@st.composite
def messages(draw, base_offset: int) -> bytes:
    """Any messages of magic 0 or 1 that a broker could send, alone or wrapped."""
    magic = draw(st.integers(0, 1))
    codec = draw(st.integers(0, 3))
    attributes = draw(st.sampled_from([0, 0x08]))
    offsets = sorted(draw(st.sets(st.integers(0, 50), min_size=1, max_size=8)))
    first = base_offset if magic == 0 or not codec else 0
    made = b"".join(
        message(magic, first + offset, draw(BYTES), draw(BYTES), timestamp_ms=draw(TIMESTAMPS))
        for offset in offsets
    )
    if not codec:
        return made
    own = base_offset + offsets[-1]
    stamp = draw(TIMESTAMPS)
    return wrapper(magic, own, made, codec=codec, timestamp_ms=stamp, attributes=attributes)


@st.composite
def blocks(draw) -> bytes:
    """A few batches in order, with holes between them, of all formats."""
    block, offset = b"", draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 4))):
        block += draw(batches(offset) | messages(offset))
        offset += 60 + draw(st.integers(0, 2))
    return block


SNAPPY, LZ4, ZSTD = 2, 3, 4
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"


@st.composite
def zstd_frames(draw, content: bytes) -> bytes:
    """`content` as clients frame it: Java without its size, librdkafka with it; or less usual."""
    parts = [content]
    if draw(st.integers(0, 4)) == 0:
        middle = draw(st.integers(0, len(content)))
        parts = [content[:middle], content[middle:]]
    frames = b""
    for part in parts:
        flags = {"write_checksum": draw(st.booleans()), "write_content_size": draw(st.booleans())}
        compressor = zstandard.ZstdCompressor(**flags).compressobj(size=len(part))
        frames += compressor.compress(part)
        if draw(st.booleans()):  # Java's last block is an empty one
            frames += compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        frames += compressor.flush()
    around = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
    return SKIPPABLE * (around == 1) + frames + SKIPPABLE * (around == 2)


@st.composite
def lz4_frames(draw, content: bytes) -> bytes:
    """`content` as clients frame it: independent blocks of 64 KiB; or less usual."""
    frame = lz4.frame.compress(
        content,
        block_size=draw(st.sampled_from([4, 4, 5, 7])),
        block_linked=draw(st.booleans()),
        content_checksum=draw(st.booleans()),
        block_checksum=draw(st.booleans()),
        store_size=draw(st.booleans()),
    )
    around = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
    return SKIPPABLE * (around == 1) + frame + SKIPPABLE * (around == 2)


def snappy_size(size: int) -> bytes:
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + snappy_size(size >> 7)


def snappy_literal(content: bytes, width: int) -> bytes:
    """Its size in the tag, or in `width` bytes behind it; snappy's package wants to see four."""
    size = len(content) - 1
    if (width == 0 and size < 60) or size < 3:
        return bytes([size << 2]) + content
    width = max(width, (size.bit_length() + 7) // 8)
    return bytes([(59 + width) << 2]) + size.to_bytes(width, "little") + content


def snappy_copy(distance: int, size: int, kind: int) -> bytes:
    """As near as `kind` says, where that can be told so."""
    if kind == 1 and 4 <= size < 12 and distance < 2048:
        return bytes([distance >> 8 << 5 | size - 4 << 2 | 1, distance & 0xFF])
    if kind < 3 and distance < 65_536:
        return bytes([size - 1 << 2 | 2]) + distance.to_bytes(2, "little")
    return bytes([size - 1 << 2 | 3]) + distance.to_bytes(4, "little")


LITERALS = st.tuples(st.binary(min_size=1, max_size=100), st.integers(0, 4))
COPIES = st.tuples(
    st.sampled_from([1, 2, 3, 7, 8, 15, 16, 100, 3000]), st.integers(1, 64), st.integers(1, 3)
)


@st.composite
def snappy_elements(draw) -> tuple[bytes, bytes]:
    """Content, and literals and copies that make it."""
    content, made = b"", b""
    for first, *how in draw(st.lists(LITERALS | COPIES, max_size=20)):
        if isinstance(first, bytes):
            content += first
            made += snappy_literal(first, *how)
        elif content:
            distance, size = min(first, len(content)), how[0]
            content += (content[-distance:] * size)[:size]
            made += snappy_copy(distance, *how)
    return content, made


@st.composite
def snappy_streams(draw) -> tuple[bytes, bytes]:
    """A value, and its record as a stream of snappy, bare or in the blocks of snappy-java."""
    parts = draw(st.lists(snappy_elements(), min_size=1, max_size=3))
    is_bare = draw(st.booleans())
    parts = parts[:1] if is_bare else parts
    value = b"".join(content for content, _ in parts)
    records = encode_batch([NewRecord(value)])[61:]
    front, end = records[: -len(value) - 1], records[-1:]
    parts[0] = (front + parts[0][0], snappy_literal(front, 0) + parts[0][1])
    parts[-1] = (parts[-1][0] + end, parts[-1][1] + snappy_literal(end, draw(st.integers(0, 4))))
    blocks = [snappy_size(len(content)) + made for content, made in parts]
    if is_bare:
        return value, blocks[0]
    header = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2
    again = header * draw(st.integers(0, 1))
    return value, header + again.join(len(block).to_bytes(4) + block for block in blocks)


@st.composite
def streams(draw, codec: int, offset: int) -> bytes:
    """What a batch of one record compresses to."""
    if codec == SNAPPY:
        return draw(snappy_streams())[1]
    size = draw(st.sampled_from([0, 10, 1000, 20_000, 600_000]))
    value = random.Random(offset).randbytes(min(size, 2000)) + bytes(size)
    frames = {LZ4: lz4_frames, ZSTD: zstd_frames}[codec]
    return draw(frames(encode_batch([NewRecord(value)])[61:]))


@st.composite
def framed_blocks(draw, codec: int) -> bytes:
    """A few batches, each of a size of its own; one of them may be damaged."""
    made = [bytearray(draw(streams(codec, offset))) for offset in range(draw(st.integers(1, 5)))]
    damage = draw(st.sampled_from(["", "", "cut", "changed", "more"]))
    which = made[draw(st.integers(0, len(made) - 1))]
    if damage == "cut":
        del which[draw(st.integers(0, len(which) - 1)) :]
    elif damage == "changed":
        which[draw(st.integers(0, len(which) - 1))] ^= draw(st.integers(1, 255))
    elif damage == "more":
        which += draw(st.binary(max_size=20))
    return b"".join(
        raw_batch(bytes(stream), 1, attributes=codec, base_offset=offset)
        for offset, stream in enumerate(made)
    )


ABORTED = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 250)), max_size=5)


@given(blocks(), st.integers(0, 300), st.integers(0, 300), ABORTED, st.integers(0, 3000))
@examples(60)
def test_both_read_the_same_rows(block, start, stop, aborted, chunk_bytes):
    assert_alike(block, start=start, stop=stop, aborted=aborted, chunk_bytes=chunk_bytes)


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
@given(st.data(), st.sampled_from([2000, 50_000, 1 << 27]), st.integers(0, 50_000))
@examples(60)
def test_both_read_a_codec_however_it_is_framed(codec, data, limit_bytes, chunk_bytes):
    block = data.draw(framed_blocks(codec))
    options = {"batch_limit_bytes": limit_bytes, "chunk_bytes": chunk_bytes}
    assert_alike(block, start=0, stop=300, check_crcs=False, **options)


@given(snappy_streams())
@examples(60)
def test_whatever_snappy_has_is_read(stream):
    value, body = stream
    _, batch = assert_alike(raw_batch(body, 1, attributes=SNAPPY), start=0, stop=1)
    assert batch.column("value").to_pylist() == [value]


@given(blocks(), st.integers(1, 3000), st.integers(0, 200), st.integers(0, 300), ABORTED)
@examples(40)
def test_chunks_are_the_whole(block, chunk_bytes, start, stop, aborted):
    options = {"wanted": Columns.OFFSET, "stop": stop}
    whole = _kernel.decode(block, start=start, aborted=aborted, **options)
    offsets, pos, at, state, passed_over = [], 0, start, aborted, 0
    while True:
        part = _kernel.decode(
            block, pos=pos, start=at, aborted=state, chunk_bytes=chunk_bytes, **options
        )
        offsets += memoryview(part.offsets).cast("q").tolist()
        passed_over += part.passed_over
        is_over = part.pos == pos
        pos, at, state = part.pos, part.next_offset, part.aborted
        if is_over:
            break
    assert offsets == memoryview(whole.offsets).cast("q").tolist()
    assert (pos, at, passed_over) == (whole.pos, whole.next_offset, whole.passed_over)


def arriving(block: bytes, cuts: list[int]):
    """The options and memory of a block that comes in pieces, each when it is asked for."""
    memory = bytearray(b"\xee" * len(block))
    cuts = sorted({*(min(cut, len(block)) for cut in cuts), len(block)})
    stops = iter([*cuts, len(block)])  # as many as before: no more will come

    def more():
        stop = next(stops)
        memory[:stop] = block[:stop]
        return stop

    return memory, {"arrived": more(), "more": more}


CUTS = st.lists(st.integers(0, 2000), max_size=6)


@given(blocks(), st.integers(0, 300), st.integers(0, 300), ABORTED, CUTS, st.integers(0, 10_000))
@examples(60)
def test_what_comes_in_pieces_is_read_as_a_whole_is(block, start, stop, aborted, cuts, noise):
    if block and noise < 5000:  # damaged half of the time
        block = block[: noise % len(block)] + b"\x07" + block[noise % len(block) + 1 :]
    options = {"start": start, "stop": stop, "aborted": aborted}
    whole = assert_alike(block, **options)
    for implementation in (_kernel, reference):
        memory, coming = arriving(block, cuts)
        assert outcome(implementation, memory, **coming, **options) == whole


# One of each kind that is read in one go, and the bytes that numbers of one, two and three have.
PLAIN = [NewRecord(b"v" * 70, b"k" * 64, 5), NewRecord(None), NewRecord(b"w" * 20, b"", 70)] * 2
BYTES_OF_NUMBERS = [0, 1, 2, 3, 7, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xFE, 0xFF]


@pytest.mark.parametrize("wanted", [Columns.ALL, Columns.VALUE], ids=["all", "value"])
def test_plain_records_changed_at_any_byte_are_read_alike(wanted):
    block = encode_batch(PLAIN)
    for pos in range(layout.HEADER_SIZE, len(block)):
        was = block[pos]
        for byte in {*BYTES_OF_NUMBERS, was ^ 1, (was + 2) % 256, (was - 2) % 256}:
            changed = block[:pos] + bytes([byte]) + block[pos + 1 :]
            assert_alike(changed, start=0, stop=10, check_crcs=False, wanted=wanted)


def test_plain_records_cut_at_any_byte_are_read_alike():
    body = encode_batch(PLAIN)[layout.HEADER_SIZE :]
    for size in range(len(body)):
        assert_alike(raw_batch(body[:size], len(PLAIN)), start=0, stop=10)


# Each of them but for one thing a plain record, with what stands before or behind as its rest.
NEARLY_PLAIN = {
    "reaches into the next batch": raw_record(b"\0\0\0\1\x2a" + bytes(20), size=26),
    "a key of less than nothing": raw_record(b"\0\0\x28\3" + bytes(20)),
    "a value of less than nothing": raw_record(bytes(4)) + b"\3" + bytes(20),
}


@pytest.mark.parametrize("body", NEARLY_PLAIN.values(), ids=NEARLY_PLAIN)
def test_what_is_nearly_plain_is_refused_alike(body):
    block = raw_batch(body, 1, last_offset_delta=20) + encode_batch(PLAIN, base_offset=30)
    assert issubclass(assert_alike(block, start=0, stop=100)[0], CorruptRecords)


@pytest.mark.parametrize("size", range(1, 11))
def test_nothing_behind_a_block_is_looked_at(size):
    """A sanitizer sees it: such memory has no byte behind its last one, as bytes have."""
    numbers = [b"\x80\0", b"\x80\0", b"\x81\0", b"\x80\0", b"\x80\0"]  # 0, but of the key: null
    content = (b"\0" + b"".join(numbers))[:size]
    batch = raw_batch(raw_record(content), 1)
    block = memoryview((c_ubyte * len(batch)).from_buffer_copy(batch)).cast("B")
    assert issubclass(assert_alike(block, start=0, stop=100)[0], CorruptRecords)


FAR = [-1, 0, 1, 63, 64, 8190, 8191, 8192, 8193]
TIMES = [sign * (layout.INT64_MAX // 1000 - far) for sign in (1, -1) for far in FAR]


@pytest.mark.parametrize("attributes", [0, layout.LOG_APPEND_TIME], ids=["made", "appended"])
@pytest.mark.parametrize("sign", [1, -1])
def test_times_that_microseconds_can_just_say_are_read_alike(sign, attributes):
    for time in TIMES:
        of_all = {"base_timestamp": 0, "max_timestamp": time}
        if not attributes:
            of_all["base_timestamp"] = time
        for far in FAR:
            record = b"\0" + zigzag(sign * far) + zigzag(0) + zigzag(-1) + zigzag(20) + bytes(21)
            block = raw_batch(raw_record(record), 1, attributes=attributes, **of_all)
            assert_alike(block, start=0, stop=10)


@given(st.binary(max_size=400), st.booleans())
@examples(150)
def test_any_bytes_are_read_alike(noise, check_crcs):
    assert_alike(noise, start=0, stop=100, check_crcs=check_crcs)


@given(st.binary(max_size=200), st.integers(-1, 20), st.integers(0, 7))
@examples(150)
def test_any_records_are_read_alike(body, count, codec):
    block = raw_batch(body, count, attributes=codec, last_offset_delta=50)
    assert_alike(block, start=0, stop=100, batch_limit_bytes=1 << 20)


@given(st.binary(max_size=120), st.integers(0, 1), st.integers(0, 7), st.integers(0, 60))
@examples(150)
def test_any_messages_are_read_alike(body, magic, codec, offset):
    block = sealed_message(offset, bytes([magic, codec]) + body)
    assert_alike(block, start=0, stop=100, batch_limit_bytes=1 << 20)
    if codec in (1, 2, 3):
        wrapped = wrapper(magic, offset, body, codec=codec)
        assert_alike(wrapped, start=0, stop=100, batch_limit_bytes=1 << 20, check_crcs=offset > 30)


def seeds(rng: random.Random) -> list[bytes]:
    """Blocks to damage: every codec, with and without keys, headers, markers; old formats."""
    made = list(old_seeds(rng))
    for codec in range(5):
        for attributes in (0, 0x10, 0x30):
            records = [
                NewRecord(rng.randbytes(rng.choice((0, 3, 40))), rng.choice((None, b"", b"key")),
                          rng.randrange(2**41), [(b"h", None), (b"\xff", b"1")] * rng.randrange(3))
                for _ in range(rng.randrange(1, 6))
            ]  # fmt: skip
            options = {"codec": codec, "attributes": attributes, "producer_id": 1}
            first = encode_batch(records, **options)
            made.append(first + encode_batch(records, base_offset=len(records), **options))
    return made


def old_seeds(rng: random.Random):
    for magic in (0, 1):
        for codec in range(4):
            inner = [
                message(magic, offset, rng.randbytes(rng.choice((0, 3, 40))), b"key",
                        timestamp_ms=rng.randrange(2**41))
                for offset in range(rng.randrange(1, 6))
            ]  # fmt: skip
            block = b"".join(inner)
            if codec:
                block = wrapper(magic, len(inner) - 1, block, codec=codec)
            yield block + message(magic, len(inner), b"last")


def damaged(rng: random.Random, block: bytes) -> bytes:
    """`block` after a few random changes; half of the time the CRC is made right again."""
    if block[16] < 2 and rng.random() < 0.5:
        size = 12 + int.from_bytes(block[8:12])
        rest = bytearray(block[16:size])
        rest[rng.randrange(1, len(rest))] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        return sealed_message(int.from_bytes(block[:8]), bytes(rest)) + block[size:]
    changed = bytearray(block)
    for _ in range(rng.randrange(1, 4)):
        kind, pos = rng.randrange(5), rng.randrange(len(changed))
        if kind == 0:
            changed[pos] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[pos] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            changed[pos : pos + rng.randrange(6)] = rng.randbytes(rng.randrange(6))
        elif kind == 3 and len(changed) > 61:
            del changed[max(61, pos) :]
        else:
            changed[pos:pos] = changed[pos : pos + rng.randrange(40)]
    if rng.random() < 0.5 and len(changed) > 61:
        changed[8:12] = (len(changed) - 12).to_bytes(4)
        return sealed(changed)
    return bytes(changed)


@pytest.mark.parametrize(
    "rounds", [MUTATIONS // 10, pytest.param(MUTATIONS, marks=pytest.mark.slow)]
)
def test_damaged_blocks_are_read_alike(rounds):
    rng = random.Random(SEED)
    sources = seeds(rng)
    refused = 0
    for round_ in range(rounds):
        block = damaged(rng, rng.choice(sources))
        options = {
            "start": rng.randrange(4),
            "stop": rng.randrange(4, 12),
            "aborted": rng.choice(([], [(1, 0)])),
            "check_crcs": rng.random() < 0.5,
            "batch_limit_bytes": 1 << 16,
        }
        try:
            refused += isinstance(assert_alike(block, **options)[0], type)
        except BaseException:
            print(f"seed {SEED}, round {round_}: {block.hex()} {options}")
            raise
    assert rounds // 10 < refused < rounds * 9 // 10, "the damage is too mild or too strong"


@pytest.mark.long
def test_damaged_blocks_are_read_alike_for_long():
    test_damaged_blocks_are_read_alike(1_000_000)
