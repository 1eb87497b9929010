"""Compressed messages of magic 0 and 1: offsets and timestamps inside, codecs, damage."""

from __future__ import annotations

import gzip

import cramjam
import lz4.frame
import pytest

from pyspark_kafkaproto.errors import BatchTooLarge
from pyspark_kafkaproto.records.compression import GZIP, LZ4, SNAPPY, ZSTD, compress
from pyspark_kafkaproto.records.layout import INT64_MAX
from tests.examples import first
from tests.unit.records.batches import rows_of
from tests.unit.records.messages import (
    CODECS,
    LARGEST_MS,
    LOG_APPEND_TIME,
    MAGICS,
    field,
    message,
    message_set,
    offsets,
    sealed_message,
    values,
    with_old_checksum,
    wrapper,
)


@CODECS
def test_a_wrapper_of_magic_0_has_absolute_offsets(decode, codec):
    decoded = decode(wrapper(0, 12, message_set(0, (10, 11, 12)), codec=codec), start=10)
    assert [(row.offset, row.value) for row in rows_of(decoded)] == [
        (10, b"v10"), (11, b"v11"), (12, b"v12"),
    ]  # fmt: skip
    assert (decoded.next_offset, decoded.passed_over, decoded.batches) == (13, 0, 1)


@CODECS
def test_a_wrapper_of_magic_1_has_relative_offsets(decode, codec):
    decoded = decode(wrapper(1, 12, message_set(1, (0, 1, 2)), codec=codec), start=10)
    assert [(row.offset, row.value) for row in rows_of(decoded)] == [
        (10, b"v0"), (11, b"v1"), (12, b"v2"),
    ]  # fmt: skip
    assert decoded.next_offset == 13


@pytest.mark.parametrize(("magic", "inner"), [(0, (13, 17, 20)), (1, (3, 7, 10)), (1, (0, 4, 7))])
def test_compaction_leaves_gaps_inside(decode, magic, inner):
    decoded = decode(wrapper(magic, 20, message_set(magic, inner), codec=GZIP), start=10)
    assert offsets(decoded) == [13, 17, 20]
    assert (decoded.next_offset, decoded.passed_over) == (21, 8)


@CODECS
@MAGICS
def test_a_wrapper_as_a_producer_sends_it(decode, magic, codec):
    """No broker has given it its offset yet: those inside count from 0, and end where they end."""
    decoded = decode(wrapper(magic, 0, message_set(magic, range(5)), codec=codec))
    assert offsets(decoded) == [0, 1, 2, 3, 4]
    assert decoded.next_offset == 5


@pytest.mark.parametrize(("start", "stop"), [(11, 13), (10, 12), (12, 99), (0, 10), (13, 99)])
def test_a_range_cuts_a_wrapper(decode, start, stop):
    """The offset of a wrapper is that of its end: rows before the stop may be inside."""
    block = wrapper(1, 13, message_set(1, range(4)), codec=GZIP)
    decoded = decode(block, start=start, stop=stop)
    assert offsets(decoded) == [offset for offset in range(10, 14) if start <= offset < stop]
    assert decoded.next_offset == min(14, stop)


@CODECS
def test_the_wrapper_says_what_its_timestamps_are(rows, codec):
    inner = message(1, 0, b"a", timestamp_ms=5) + message(1, 1, b"b", timestamp_ms=9)
    create = wrapper(1, 1, inner, codec=codec, timestamp_ms=9)
    append = wrapper(1, 1, inner, codec=codec, timestamp_ms=777, attributes=LOG_APPEND_TIME)
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(create)] == [
        (5000, 0), (9000, 0),
    ]  # fmt: skip
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(append)] == [(777_000, 1)] * 2


def test_inside_a_wrapper_of_magic_0_there_are_no_timestamps(rows):
    block = wrapper(0, 1, message_set(0, (0, 1)), codec=GZIP, attributes=LOG_APPEND_TIME)
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(block)] == [(-1000, -1)] * 2


@pytest.mark.slow
@MAGICS
@pytest.mark.parametrize("codec", first(1, [LZ4, GZIP, SNAPPY]))
def test_many_messages_in_a_wrapper(decode, implementation, magic, codec):
    inner = b"".join(
        message(magic, index, None if index % 3 else b"v" * (index % 90), b"k%d" % index)
        for index in range(3000)
    )
    decoded = decode(wrapper(magic, 2999, inner, codec=codec))
    assert [row.key for row in rows_of(decoded)] == [b"k%d" % index for index in range(3000)]
    assert decoded.decompressed_bytes == decoded.max_batch_bytes == len(inner)


def test_the_key_of_a_wrapper_means_nothing(rows):
    assert len(rows(wrapper(1, 1, message_set(1, (0, 1)), codec=GZIP, key=b"key"))) == 2


INNER = message_set(1, range(200))
STREAMS = {
    "gzip in two members": (GZIP, lambda: gzip.compress(INNER[:99]) + gzip.compress(INNER[99:])),
    "snappy raw": (SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(INNER))),
    "snappy in xerial's framing": (SNAPPY, lambda: compress(SNAPPY, INNER)),
    "lz4 with the right checksum": (LZ4, lambda: lz4.frame.compress(INNER)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_every_form_of_a_codec(decode, name):
    codec, stream = STREAMS[name]
    assert decode(message(1, 199, stream(), attributes=codec)).rows == 200


@pytest.mark.parametrize("size", [None, 8])
def test_lz4_in_magic_0_may_have_either_checksum(decode, refused, size):
    """Clients of that time got it wrong, and readers of magic 0 never looked (KAFKA-3160)."""
    inner = message_set(0, range(200))
    right = lz4.frame.compress(inner, store_size=size is not None)
    pos = 6 + (size or 0)
    wrong = right[:pos] + bytes([right[pos] ^ 0xFF]) + right[pos + 1 :]
    for frame in (right, wrong):
        assert decode(message(0, 199, frame, attributes=LZ4)).rows == 200
    inner = message_set(1, range(200))
    wrong = with_old_checksum(compress(LZ4, inner))
    assert "lz4 data cannot be decompressed" in str(refused(message(1, 199, wrong, attributes=LZ4)))


@pytest.mark.parametrize("end", range(8))
def test_lz4_of_magic_0_cut_in_its_header(refused, end):
    refused(message(0, 0, compress(LZ4, message(0, 0, b"v"))[:end], attributes=LZ4))


@MAGICS
def test_zstd_is_newer_than_messages(refused, magic):
    block = wrapper(magic, 0, message(magic, 0, b"v"), codec=ZSTD)
    assert f"a message of magic {magic} cannot be compressed with zstd" in str(refused(block))


@MAGICS
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(refused, magic, codec):
    error = refused(message(magic, 0, b"v", attributes=codec))
    assert f"codec {codec} is unknown" in str(error)


@MAGICS
@CODECS
def test_damage_that_no_crc_catches(refused, magic, codec):
    inner = message_set(magic, range(50))
    sound = wrapper(magic, 49, inner, codec=codec)
    stream_pos = 26 + 8 * magic
    noise = bytes(range(256)) * (len(sound) // 256 + 1)
    damaged = sound[: stream_pos + 12] + noise[: len(sound) - stream_pos - 12]
    refused(damaged, check_crcs=False)


@MAGICS
@CODECS
def test_nested_compression_is_corrupt(refused, magic, codec):
    inner = wrapper(magic, 0, message(magic, 0, b"v"), codec=codec)
    block = wrapper(magic, 0, inner, codec=codec)
    assert "message 0: it is compressed and stands in a compressed" in str(refused(block))


@MAGICS
def test_a_wrapper_around_nothing(refused, magic):
    assert "no message is in it" in str(refused(wrapper(magic, 3, b"", codec=GZIP)))
    assert "its value is null" in str(refused(message(magic, 3, None, attributes=GZIP)))


@MAGICS
def test_a_wrapper_with_a_damaged_field(refused, magic):
    rest = bytes([magic, GZIP]) + bytes(8 * magic) + field(b"key") + (99).to_bytes(4) + b"v"
    assert "the length of a key or value" in str(refused(sealed_message(3, rest)))


def raw(magic: int, content: bytes) -> bytes:
    """The second message of a set, with anything in place of key and value."""
    return sealed_message(1, bytes([magic, 0]) + bytes(8 * magic) + content)


INSIDE = {
    "wrong CRC": (lambda m: message(m, 1, b"v")[:-1] + b"w", "its CRC-32 is not"),
    "cut front": (lambda m: message(m, 1, b"v")[:17], "its length is below"),
    "cut end": (lambda m: message(m, 1, b"v")[:-1], "its length is below the least"),
    "length negative": (lambda m: sealed_message(1, bytes([m]) + bytes(30), -1), "its length is"),
    "length too small": (
        lambda m: sealed_message(1, bytes([m]) + bytes(30), 13 + 8 * m),
        "its length is below",
    ),
    "magic 2": (lambda _: sealed_message(1, b"\x02" + bytes(60)), "its magic is not"),
    "the other magic": (lambda m: message(1 - m, 1, b"v" * 9), "its magic is not"),
    "same offset": (lambda m: message(m, 0, b"v"), "its offset is negative or not"),
    "offset negative": (lambda m: message(m, -1, b"v"), "its offset is negative or not"),
    "field": (lambda m: raw(m, field(b"k") + b"\xff" * 3), "the length of a key or value"),
    "leftover": (lambda m: raw(m, field(b"k") + field(b"v") + b"x"), "its length does not agree"),
}


@MAGICS
@pytest.mark.parametrize("name", first(6, INSIDE))
def test_what_no_message_inside_has(refused, magic, name):
    make, reason = INSIDE[name]
    block = wrapper(magic, 1, message(magic, 0, b"first") + make(magic), codec=GZIP)
    assert f"message 1: {reason}" in str(refused(block))


@MAGICS
def test_the_first_message_inside_has_no_negative_offset(refused, magic):
    block = wrapper(magic, 1, message_set(magic, (-1, 0)), codec=GZIP)
    assert "message 0: its offset is negative or not" in str(refused(block))


def test_a_timestamp_that_microseconds_cannot_say_is_told_by_its_message(refused):
    inner = message_set(1, (0, 1)) + message(1, 2, b"v", timestamp_ms=LARGEST_MS + 1)
    block = wrapper(1, 2, inner, codec=GZIP)
    assert "message 2: its timestamp in microseconds" in str(refused(block))


def test_a_crc_inside_is_not_looked_at_when_not_asked_for(decode):
    inner = message(1, 0, b"v")[:-1] + b"w"
    assert values(decode(wrapper(1, 0, inner, codec=GZIP), check_crcs=False)) == [b"w"]


@pytest.mark.parametrize(
    ("magic", "own", "inner"),
    [(0, 9, (7, 8)), (0, 9, (9, 10)), (0, 9, (0, 1)), (1, 3, (3, 4)), (1, 2, (INT64_MAX,))],
)
def test_offsets_that_do_not_fit_the_wrapper(refused, magic, own, inner):
    error = refused(wrapper(magic, own, message_set(magic, inner), codec=GZIP))
    assert f"has offset {inner[-1]}, which does not fit its own offset {own}" in str(error)


def test_offsets_far_beyond_a_wrapper_without_one(refused):
    error = refused(wrapper(1, 0, message_set(1, (0, 2**31)), codec=GZIP))
    assert "does not fit its own offset 0" in str(error)


@pytest.mark.parametrize(("magic", "inner"), [(0, (8, 11)), (1, (0, 3))])
def test_a_wrapper_that_steps_back(refused, magic, inner):
    first = message(magic, 9, b"v")
    error = refused(first + wrapper(magic, 11, message_set(magic, inner), codec=GZIP))
    assert "has offset 8, but the batch before it ends at 9" in str(error)
    assert error.pos == len(first)
    error = refused(first + wrapper(magic, 9, message_set(magic, (9,)), codec=GZIP))
    assert "ends at offset 9, but the batch before it ends at 9" in str(error)


@MAGICS
@CODECS
def test_a_wrapper_over_the_limit(refused, decode, magic, codec):
    inner = message(magic, 0, b"x" * 5000)
    block = wrapper(magic, 0, inner, codec=codec)
    error = refused(block, batch_limit_bytes=5000)
    assert type(error) is BatchTooLarge
    assert "more than the limit of 5000" in str(error)
    assert decode(block, batch_limit_bytes=len(inner)).rows == 1
