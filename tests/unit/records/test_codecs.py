"""Compressed batches: each codec, damage in each, and the bound on what comes out."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from pyspark_kafkaproto.records import Columns, NewRecord, compression, encode_batch
from pyspark_kafkaproto.records.compression import GZIP, LZ4, SNAPPY, ZSTD, compress
from tests.examples import first
from tests.unit.records.batches import raw_batch, rows_of, with_fields

CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
RECORDS = [NewRecord(b"value %d " % index * 20, b"key %d" % index) for index in range(300)]
PLAIN = encode_batch(RECORDS)
BODY = PLAIN[61:]


def compressed(stream: bytes, codec: int, **fields: int) -> bytes:
    """The batch of RECORDS, its records given as any stream of `codec`."""
    return raw_batch(stream, len(RECORDS), attributes=codec, **fields)


@CODECS
def test_every_codec_gives_the_same_rows(decode, codec):
    block = encode_batch(RECORDS, codec=codec)
    assert len(block) < len(PLAIN)
    decoded = decode(block)
    assert rows_of(decoded) == rows_of(decode(PLAIN))
    assert decoded.decompressed_bytes == len(BODY)


@CODECS
def test_batches_of_several_codecs_in_one_block(rows, codec):
    block = encode_batch(RECORDS, codec=codec) + encode_batch(RECORDS, base_offset=300)
    assert len(rows(block)) == 600


@CODECS
def test_records_far_larger_than_their_stream_are_whole(rows, codec):
    """No part of them is as another, nor as memory that is new."""
    value = b"".join(number.to_bytes(2) * 2500 for number in range(1000))
    block = encode_batch([NewRecord(value), NewRecord(b"behind")], codec=codec)
    assert [row.value for row in rows(block)] == [value, b"behind"]


def halves(stream_of) -> bytes:
    middle = len(BODY) // 2
    return stream_of(BODY[:middle]) + stream_of(BODY[middle:])


def gzip_with_sum(data: bytes) -> bytes:
    """With a header longer than the pieces in which members behind the first are read."""
    comment = b"c" * 3000
    header = b"\x1f\x8b\x08\x12" + bytes(6) + comment + b"\x00"
    sum16 = zlib.crc32(header) & 0xFFFF
    return header + sum16.to_bytes(2, "little") + gzip.compress(data)[10:]


def gzip_with_fields(data: bytes) -> bytes:
    """With two fields in a header, which is longer than two pieces as above."""
    fields = (5000).to_bytes(2, "little") + b"e" * 5000 + b"n" * 3000 + b"\x00"
    return b"\x1f\x8b\x08\x0c" + bytes(6) + fields + gzip.compress(data)[10:]


def xerial(data: bytes, size: int = 1000) -> bytes:
    out = [b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2]
    for start in range(0, len(data), size):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + size]))
        out += [len(block).to_bytes(4), block]
    return b"".join(out)


def zstd_stream(data: bytes) -> bytes:
    """As the Java client writes it: without content size, an empty block at its end."""
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    written = compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return written + compressor.flush()


STREAMS = {
    "gzip in one member": (GZIP, lambda: gzip.compress(BODY)),
    "gzip in two members": (GZIP, lambda: halves(gzip.compress)),
    "gzip in many members": (
        GZIP,
        lambda: b"".join(gzip.compress(BODY[i : i + 100]) for i in range(0, len(BODY), 100)),
    ),
    "gzip with an empty member": (GZIP, lambda: gzip.compress(BODY) + gzip.compress(b"")),
    "gzip with a file name": (
        GZIP,
        lambda: b"\x1f\x8b\x08\x08" + gzip.compress(BODY, mtime=0)[4:10] + b"name\x00"
        + gzip.compress(BODY)[10:],
    ),
    "gzip with a sum of its header": (GZIP, lambda: gzip_with_sum(BODY)),
    "gzip with sums of long headers": (GZIP, lambda: halves(gzip_with_sum)),
    "gzip with long fields of its headers": (GZIP, lambda: halves(gzip_with_fields)),
    "snappy raw": (SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(BODY))),
    "snappy in xerial's framing": (SNAPPY, lambda: xerial(BODY)),
    "snappy in two xerial streams": (SNAPPY, lambda: halves(xerial)),
    "lz4 with content size": (LZ4, lambda: lz4.frame.compress(BODY, store_size=True)),
    "lz4 without content size": (LZ4, lambda: lz4.frame.compress(BODY, store_size=False)),
    "lz4 with checksums": (
        LZ4,
        lambda: lz4.frame.compress(BODY, content_checksum=True, block_checksum=True),
    ),
    "lz4 with linked blocks": (LZ4, lambda: lz4.frame.compress(BODY, block_linked=True)),
    "lz4 stored": (LZ4, lambda: lz4.frame.compress(BODY, compression_level=-65537)),
    "zstd with content size": (ZSTD, lambda: zstandard.ZstdCompressor().compress(BODY)),
    "zstd without content size": (ZSTD, lambda: zstd_stream(BODY)),
    "zstd in two frames": (ZSTD, lambda: halves(zstd_stream)),
    "zstd with a skippable frame": (
        ZSTD,
        lambda: b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + zstd_stream(BODY),
    ),
    "zstd with a checksum": (
        ZSTD,
        lambda: zstandard.ZstdCompressor(write_checksum=True).compress(BODY),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", first(12, STREAMS))
def test_every_form_of_a_codec(decode, rows, name):
    codec, stream = STREAMS[name]
    assert rows_of(decode(compressed(stream(), codec))) == rows(PLAIN)


@pytest.mark.parametrize("name", first(12, STREAMS))
def test_every_form_where_a_library_shows_no_functions(monkeypatch, decode, rows, name):
    """Two batches of it: one codec's may follow each other without a step in Python."""
    codec, stream = STREAMS[name]
    block = compressed(stream(), codec) + with_fields(compressed(stream(), codec), base_offset=300)
    found = rows_of(decode(block))
    monkeypatch.setattr(compression, "native_functions", lambda _: None)
    assert rows_of(decode(block)) == found
    assert found[:300] == rows(PLAIN)


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("aborted", [[], [(1, 10_000)]], ids=["all", "committed"])
def test_small_batches_take_no_step_in_python(monkeypatch, codec, aborted):
    """Where aborted transactions are to be passed over, too: none of them lies ahead of 10 000."""
    kernel = pytest.importorskip("pyspark_kafkaproto.records._kernel")
    one = encode_batch(RECORDS, codec=codec)
    block = one + with_fields(one, base_offset=300)
    monkeypatch.setattr(compression, "decompress", None)
    options = {"start": 0, "stop": 600, "aborted": aborted, "wanted": Columns.VALUE}
    assert kernel.decode(block, **options).rows == 600


@pytest.mark.parametrize("word", [b"\x00", random.Random(1).randbytes(100)], ids=len)
def test_snappy_of_all_the_memory_kept_for_it(decode, word):
    """Copies are made of whole blocks: a sanitizer sees where there is no room for the last one."""
    for size in range((1 << 20) - 12, (1 << 20) + 2):
        plain = encode_batch([NewRecord((word * size)[:size])])
        block = raw_batch(bytes(cramjam.snappy.compress_raw(plain[61:])), 1, attributes=SNAPPY)
        assert rows_of(decode(block)) == rows_of(decode(plain))


def test_a_size_of_snappy_that_stands_at_the_very_end(rows, refused):
    """The package looks at four bytes for it, whatever it wants of them; compressors write none."""
    short, end = BODY[:-1], BODY[-1:]
    size = bytes([len(BODY) & 127 | 128, len(BODY) >> 7 & 127 | 128, len(BODY) >> 14])
    stream = size + bytes([61 << 2]) + (len(short) - 1).to_bytes(2, "little") + short
    assert rows(compressed(stream + b"\x00" + end, SNAPPY)) == rows(PLAIN)
    assert "snappy" in str(refused(compressed(stream + b"\xf0\x00" + end, SNAPPY)))


def test_snappy_takes_no_step_in_python_where_it_fits_the_memory_kept(monkeypatch):
    """Of whatever size it is compressed: nobody's library has to be called."""
    kernel = pytest.importorskip("pyspark_kafkaproto.records._kernel")
    value = random.Random(1).randbytes(1 << 19)
    block = encode_batch([NewRecord(value)], codec=SNAPPY)
    monkeypatch.setattr(compression, "decompress", None)
    assert kernel.decode(block, start=0, stop=1, wanted=Columns.VALUE).rows == 1


SUMS = """
import sys
from types import SimpleNamespace
import crc32c
sums = []
counted = lambda *given: sums.append(given) or crc32c.crc32c(*given)
sys.modules["crc32c"] = SimpleNamespace(crc32c=counted)
from pyspark_kafkaproto.records import Columns, _block, _kernel
_block.folds = False  # what is folded here nobody can count
block = sys.stdin.buffer.read()
rows = _kernel.decode(block, start=0, stop=2**62, wanted=Columns.VALUE).rows
print(rows, len(sums))
"""


def test_a_batch_has_its_crc_computed_once_though_each_is_left_to_python():
    """Of many in a row all are looked at before one is unpacked: not again for each of them."""
    stream = xerial(BODY) + xerial(b"")  # a header that nothing follows
    batches = [compressed(stream, SNAPPY, base_offset=300 * index) for index in range(20)]
    done = subprocess.run(
        [sys.executable, "-c", SUMS], input=b"".join(batches), capture_output=True, check=True
    )
    assert done.stdout.split() == [b"6000", b"20"]


def zstd_as(flags: dict[str, bool], content: bytes) -> bytes:
    return zstandard.ZstdCompressor(**flags).compress(content)


# Of all header sizes: a content size takes 1, 2 or 4 bytes, or there is a window in its place.
ZSTD_FLAGS = [
    {"write_content_size": has_size, "write_checksum": has_checksum}
    for has_size in (False, True)
    for has_checksum in (False, True)
]
SKIPPED = [b"", b"\x50\x2a\x4d\x18\x00\x00\x00\x00", b"\x5f\x2a\x4d\x18\x03\x00\x00\x00abc"]


@pytest.mark.parametrize("skipped", first(1, SKIPPED), ids=len)
@pytest.mark.parametrize("flags", ZSTD_FLAGS, ids=lambda flags: "-".join(map(str, flags.values())))
@pytest.mark.parametrize("value_bytes", first(1, [300, 1, 70_000, 600_000]))
def test_zstd_frames_are_whole_or_refused(decode, refused, flags, skipped, value_bytes):
    """Blocks of repeated bytes, of literals, of both; larger than the memory kept for it, too."""
    for value in (b"a" * value_bytes, random.Random(1).randbytes(value_bytes)):
        plain = encode_batch([NewRecord(value)])
        frame = zstd_as(flags, plain[61:])
        for stream in (skipped + frame, frame + skipped):
            assert rows_of(decode(raw_batch(stream, 1, attributes=ZSTD))) == rows_of(decode(plain))
        for cut in (1, 2, 3, 4, 5, len(frame) // 2):
            error = refused(raw_batch(skipped + frame[:-cut], 1, attributes=ZSTD))
            assert "zstd data ends too early" in str(error)


def test_zstd_in_one_block_after_a_batch_that_was_too_large_for_the_memory_kept(rows):
    sizes = (10, 600_000, 10, 900_000, 10)
    batches = [
        encode_batch([NewRecord(b"a" * size)], base_offset=offset, codec=ZSTD)
        for offset, size in enumerate(sizes)
    ]
    assert [len(row.value) for row in rows(b"".join(batches))] == list(sizes)


# A zstd batch after another is given room by what that held, and is looked at again where it needs
# more, is several frames, or is damaged.

AHEAD = [b"a", b"a" * 10_000, b"a" * 1_000_000]


def behind(ahead: bytes, stream: bytes, count: int = len(RECORDS)) -> bytes:
    """Two batches: `ahead` alone in its own, as the Java client writes it, and `stream`."""
    first_one = raw_batch(zstd_stream(encode_batch([NewRecord(ahead)])[61:]), 1, attributes=ZSTD)
    return first_one + raw_batch(stream, count, base_offset=1, attributes=ZSTD)


@pytest.mark.parametrize("ahead", first(1, AHEAD[::-1]), ids=len)
@pytest.mark.parametrize("name", first(5, [name for name in STREAMS if name.startswith("zstd")]))
def test_every_form_of_zstd_behind_another_batch(rows, name, ahead):
    found = rows(behind(ahead, STREAMS[name][1]()))
    assert found[0].value == ahead
    assert [row.value for row in found[1:]] == [record.value for record in RECORDS]


@pytest.mark.parametrize("ahead", first(1, AHEAD), ids=len)
@pytest.mark.parametrize("skipped", [b"", *SKIPPED[1:]], ids=len)
def test_zstd_behind_another_batch_that_is_damaged(refused, ahead, skipped):
    for cut in (1, 2, 3, 4, 5, 100):
        error = refused(behind(ahead, skipped + zstd_stream(BODY)[:-cut]))
        assert error.base_offset == 1
        assert "zstd data ends too early" in str(error)
    assert refused(behind(ahead, skipped + zstd_stream(BODY) + b"garbage!")).base_offset == 1


# The last one is nearly as large: twice its size is more than may come.
@pytest.mark.parametrize("ahead", [*AHEAD[:2], b"a" * (len(BODY) - 100)], ids=len)
def test_the_limit_holds_behind_another_batch(rows, refused, ahead):
    """Exactly so much may come, and no byte more."""
    block = behind(ahead, zstd_stream(BODY))
    limit = max(len(BODY), len(ahead) + 20)
    assert len(rows(block, batch_limit_bytes=limit)) == 1 + len(RECORDS)
    assert "more than" in str(refused(block, batch_limit_bytes=len(BODY) - 1))


@CODECS
def test_damage_that_no_crc_catches(decode, refused, codec):
    block = encode_batch(RECORDS, codec=codec)
    noise = bytes(range(256)) * ((len(block) - 61) // 256 + 1)
    damaged = block[:80] + noise[: len(block) - 80]
    error = refused(damaged, check_crcs=False)
    assert error.pos == 0


@CODECS
def test_a_stream_that_ends_too_early(refused, codec):
    stream = compress(codec, BODY)
    for end in (0, 1, 5, 20, len(stream) // 2, len(stream) - 5):
        refused(compressed(stream[:end], codec))


@CODECS
def test_bytes_behind_the_stream(refused, codec):
    refused(compressed(compress(codec, BODY) + b"garbage!", codec))


@pytest.mark.parametrize("behind", [b"\x00", bytes(16), b"\x1f\x00", b"not gzip's"])
def test_bytes_behind_gzip_that_begin_no_member_are_called_so(refused, behind):
    error = refused(compressed(gzip.compress(BODY) + behind, GZIP))
    assert "bytes follow the end of its gzip data" in str(error)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(refused, codec):
    error = refused(with_fields(PLAIN, attributes=codec))
    assert f"codec {codec} is unknown" in str(error)


@CODECS
def test_records_that_disagree_with_the_count(refused, codec):
    block = encode_batch(RECORDS, codec=codec)
    assert "bytes follow its 299" in str(refused(with_fields(block, record_count=299)))
    assert "cannot hold" in str(refused(with_fields(block, record_count=2**31 - 1)))
    assert "cannot hold -1" in str(refused(with_fields(block, record_count=-1)))


# Bombs

LIMIT = 1 << 20


def zeros_in_zstd() -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return b"".join(compressor.compress(bytes(1 << 22)) for _ in range(4)) + compressor.flush()


BOMBS = {
    "gzip": (GZIP, lambda: gzip.compress(bytes(16 << 20), 1)),
    "gzip of many members": (GZIP, lambda: gzip.compress(bytes(1 << 19), 1) * 16),
    "snappy raw": (SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(bytes(16 << 20)))),
    "snappy in xerial's framing": (SNAPPY, lambda: xerial(bytes(16 << 20), 1 << 16)),
    "lz4": (LZ4, lambda: lz4.frame.compress(bytes(16 << 20))),
    "zstd": (ZSTD, zeros_in_zstd),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_at_the_limit(refused, name):
    codec, bomb = BOMBS[name]
    block = compressed(bomb(), codec)
    tracemalloc.start()
    try:
        error = refused(block, batch_limit_bytes=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "more than" in str(error)
    assert peak < 4 * LIMIT + len(block)


LIES = {
    "snappy raw": (SNAPPY, b"\xff\xff\xff\xff\x07" + b"\x00" * 100),
    "snappy of four bytes": (SNAPPY, b"\x80\x80\x80\x20"),
    "snappy in xerial's framing": (
        SNAPPY,
        b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2 + (10**9).to_bytes(4) + b"x" * 50,
    ),
    "snappy block of negative size": (
        SNAPPY,
        b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2 + b"\xff" * 4 + b"x" * 50,
    ),
    "lz4 content size": (
        LZ4,
        # magic, flags with content size, 64 KiB blocks, 2**30 bytes, header checksum unchecked
        b"\x04\x22\x4d\x18\x68\x40" + (1 << 30).to_bytes(8, "little") + b"\x00" * 50,
    ),
    "zstd content size": (
        ZSTD,
        # magic, single segment with an 8-byte content size of 2**30, then one empty last block
        b"\x28\xb5\x2f\xfd\xe0" + (1 << 30).to_bytes(8, "little") + b"\x01\x00\x00",
    ),
    "zstd window": (ZSTD, b"\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_declared_size_that_lies_allocates_nothing(refused, name):
    codec, stream = LIES[name]
    tracemalloc.start()
    try:
        refused(compressed(stream, codec))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < LIMIT


def test_a_zstd_frame_that_ends_behind_a_block_that_is_not_the_last(refused):
    """The next block's header would be behind the batch: a sanitizer sees who looks at it."""
    frame = bytes.fromhex("28b52ffd 00 58 000000")
    assert "zstd" in str(refused(raw_batch(frame, 1, attributes=ZSTD)))


def zstd_blocks(*blocks: tuple[int, int, bytes], window: int = 0x58) -> bytes:
    """A frame of blocks, each given as its type, its size, and what it has."""
    headers = [size << 3 | kind << 1 for kind, size, _ in blocks]
    headers[-1] |= 1
    return bytes.fromhex("28b52ffd 00") + bytes([window]) + b"".join(
        header.to_bytes(3, "little") + content
        for header, (_, _, content) in zip(headers, blocks, strict=True)
    )  # fmt: skip


RAW, RLE = 0, 1  # types of blocks
LARGEST_BLOCK = 128 << 10


def zeros_in_a_block(count: int, window: int = 0x58) -> bytes:
    """A record of so many zeros, which are one block, between what else it has."""
    records = encode_batch([NewRecord(bytes(count))])[61:]
    front, end = records[: -count - 1], records[-1:]
    return zstd_blocks(
        (RAW, len(front), front), (RLE, count, b"\x00"), (RAW, len(end), end), window=window
    )


def test_a_zstd_block_larger_than_it_may_be(rows, refused):
    """The library takes it where it reads all at once; clients, which do not, never would."""
    (row,) = rows(raw_batch(zeros_in_a_block(LARGEST_BLOCK), 1, attributes=ZSTD))
    assert row.value == bytes(LARGEST_BLOCK)
    for stream in (
        zeros_in_a_block(LARGEST_BLOCK + 1),
        zeros_in_a_block(2000, window=0),  # of 1 KiB, and so are its blocks
        zstd_blocks((RLE, LARGEST_BLOCK + 1, b"\x00")),
        zstd_blocks((RLE, 1025, b"\x00"), window=0),
    ):
        assert "zstd" in str(refused(raw_batch(stream, 1, attributes=ZSTD)))


def test_a_zstd_window_smaller_than_its_block(rows, refused):
    """As a flipped bit makes it, where no CRC is looked at."""
    rng = random.Random(1)
    words = [rng.randbytes(50) for _ in range(40)]
    records = encode_batch([NewRecord(b"".join(rng.choices(words, k=2000)))])[61:]
    frame = bytearray(zstd_stream(records))
    assert len(rows(raw_batch(bytes(frame), 1, attributes=ZSTD))) == 1
    frame[5] = 0x18  # 8 KiB
    assert "zstd" in str(refused(raw_batch(bytes(frame), 1, attributes=ZSTD)))
