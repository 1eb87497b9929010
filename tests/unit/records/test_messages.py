"""The formats before record batches: messages of magic 0 and 1, alone, wrapped, mixed."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BatchTooLarge, CorruptRecords, TimestampOutOfRange
from pyspark_kafkaproto.records import Columns, NewRecord, encode_batch
from pyspark_kafkaproto.records.compression import GZIP, LZ4, NONE, SNAPPY
from pyspark_kafkaproto.records.layout import INT32_MAX, INT64_MAX
from tests.unit.records.batches import rows_of
from tests.unit.records.messages import (
    LARGEST_MS,
    LOG_APPEND_TIME,
    MAGICS,
    field,
    message,
    message_set,
    offsets,
    sealed_message,
    wrapper,
)

# One message


def test_a_message_of_magic_0(rows):
    (row,) = rows(message(0, 42, b"value", b"key"))
    assert row == (42, -1000, -1, b"key", b"value", None)


@pytest.mark.parametrize(("attributes", "kind"), [(0, 0), (LOG_APPEND_TIME, 1)])
def test_a_message_of_magic_1(rows, attributes, kind):
    block = message(1, 42, b"value", b"key", timestamp_ms=1_700_000_000_123, attributes=attributes)
    assert rows(block) == [(42, 1_700_000_000_123_000, kind, b"key", b"value", None)]


def test_the_bytes_of_a_message_by_hand(rows):
    magic_0 = "0000000000000005 00000010 1fecd70a 00 00 00000001 6b 00000001 76"
    (row,) = rows(bytes.fromhex(magic_0))
    assert (row.offset, row.key, row.value) == (5, b"k", b"v")


@MAGICS
@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_null_is_not_empty(rows, magic, key, value):
    block = message(magic, 0, value, key) + message(magic, 1, b"x", b"y")
    assert [(row.key, row.value) for row in rows(block)] == [(key, value), (b"y", b"x")]


@MAGICS
def test_messages_follow_each_other_with_holes(decode, magic):
    decoded = decode(message_set(magic, (3, 4, 9)), start=3)
    assert offsets(decoded) == [3, 4, 9]
    assert (decoded.next_offset, decoded.batches, decoded.passed_over) == (10, 3, 4)


@MAGICS
def test_a_range_takes_its_messages(decode, magic):
    decoded = decode(message_set(magic, range(10)), start=3, stop=7)
    assert offsets(decoded) == [3, 4, 5, 6]
    assert decoded.next_offset == 7


@MAGICS
@pytest.mark.parametrize("column", list(Columns))
def test_only_what_is_wanted_is_built(decode, magic, column):
    decoded = decode(message_set(magic, range(3)), wanted=column)
    names = ("offsets", "timestamps", "timestamp_types", "key", "value", "headers")
    built = [name for name in names if getattr(decoded, name) is not None]
    assert (decoded.rows, built) == (3, [names[list(Columns).index(column)]])


@MAGICS
def test_a_message_cut_by_the_end_of_the_block_is_left_alone(decode, implementation, magic):
    first, second = message(magic, 0, b"a"), message(magic, 1, b"b")
    for end in range(len(first), len(first + second)):
        decoded = decode((first + second)[:end])
        assert (decoded.rows, decoded.pos, decoded.next_offset) == (1, len(first), 1), end
        missing = len(second) if end - len(first) >= 12 else 0
        assert implementation.skim((first + second)[:end]) == (1, len(first), 1, missing, -1), end


def test_the_filler_behind_an_answer_in_an_old_format(decode, implementation):
    """What a broker puts where an answer written back is shorter than it said: nothing is lost."""
    first = message(1, 0, b"a")
    for filler in (b"\x00" * 8, b"\xff" * 8 + (61).to_bytes(4) + b"\x00" * 20):
        decoded = decode(first + filler)
        assert (decoded.rows, decoded.pos, decoded.next_offset) == (1, len(first), 1)
        assert implementation.skim(first + filler)[:3] == (1, len(first), 1)


@MAGICS
def test_a_chunk_ends_behind_the_message_that_passes_it(decode, magic):
    block = message_set(magic, range(10))
    size = len(block) // 10
    assert decode(block, chunk_bytes=1).batches == 1
    assert decode(block, chunk_bytes=size + 1).batches == 2
    whole = decode(block)
    assert (whole.decompressed_bytes, whole.max_batch_bytes) == (len(block), size)


@MAGICS
def test_no_bit_under_the_crc_may_be_wrong(refused, decode, magic):
    sound = message(magic, 7, b"value", timestamp_ms=5)
    for pos in range(16, len(sound)):
        damaged = bytearray(sound)
        damaged[pos] ^= 0x40
        if pos != 16:
            assert "CRC-32 is " in str(refused(damaged)), pos
    damaged = bytearray(sound)
    damaged[12] ^= 1
    assert "CRC-32 is " in str(refused(damaged))
    assert decode(damaged, check_crcs=False).rows == 1


@MAGICS
@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_a_length_that_no_message_has(refused, magic, length):
    block = sealed_message(3, bytes([magic]) + bytes(40), length)
    assert f"its length is {length}, the least is 14" in str(refused(block))


def test_a_length_below_that_of_magic_1(refused):
    block = sealed_message(3, b"\x01" + bytes(40), 21)
    assert "its length is 21, the least of magic 1 is 22" in str(refused(block))


@MAGICS
def test_a_length_near_the_largest(refused, decode, magic):
    block = sealed_message(3, bytes([magic]) + bytes(40), INT32_MAX)
    assert "more than the limit" in str(refused(block))
    decoded = decode(block, batch_limit_bytes=INT32_MAX)
    assert (decoded.rows, decoded.pos) == (0, 0)


FIELDS = {
    "key below null": (-2).to_bytes(4, signed=True) + field(b"value"),
    "key past the message": (99).to_bytes(4) + field(b"value"),
    "key near the largest": INT32_MAX.to_bytes(4) + field(b"value"),
    "value below null": field(b"key") + (-(2**31)).to_bytes(4, signed=True),
    "value past the message": field(b"key") + (6).to_bytes(4) + b"value",
    "no value": field(b"a long key"),
    "half a size": field(b"a key") + b"\x00\x00",
}


@MAGICS
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_no_message_has(refused, magic, name):
    rest = bytes([magic, 0]) + bytes(8 * magic) + FIELDS[name]
    error = refused(sealed_message(30, rest), start=30)
    assert "message 0: the length of a key or value" in str(error)
    assert error.base_offset == 30


@MAGICS
def test_bytes_behind_the_value_are_refused(refused, magic):
    rest = bytes([magic, 0]) + bytes(8 * magic) + field(b"k") + field(b"v") + b"\x00"
    assert "does not agree with its content" in str(refused(sealed_message(0, rest)))


@pytest.mark.parametrize("timestamp_ms", [-1, 0, LARGEST_MS, -LARGEST_MS])
def test_timestamps_up_to_the_largest(rows, timestamp_ms):
    assert rows(message(1, 0, b"", timestamp_ms=timestamp_ms))[0].timestamp_us == (
        timestamp_ms * 1000
    )


@pytest.mark.parametrize("timestamp_ms", [LARGEST_MS + 1, -(2**63), INT64_MAX])
@pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME])
def test_a_timestamp_that_microseconds_cannot_say(decode, refused, timestamp_ms, attributes):
    block = message(1, 0, b"", timestamp_ms=timestamp_ms, attributes=attributes)
    error = refused(block)
    assert type(error) is TimestampOutOfRange
    assert "message 0: its timestamp in microseconds" in str(error)
    assert decode(block, wanted=Columns.VALUE).rows == 1


@MAGICS
def test_other_attributes_mean_nothing(rows, magic):
    """Those of record batches are not theirs: no message is a control record."""
    (row,) = rows(message(magic, 0, b"v", attributes=0xF0))
    assert (row.value, row.timestamp_type) == (b"v", -1 if magic == 0 else 0)


@MAGICS
def test_a_message_is_never_aborted(rows, magic):
    assert len(rows(message_set(magic, range(2)), aborted=[(-1, 0), (0, 0)])) == 2


@MAGICS
def test_offsets_that_step_back_are_refused(refused, implementation, magic):
    block = message_set(magic, (4, 4))
    error = refused(block)
    assert "begins at offset 4, but the batch before it ends at 4" in str(error)
    assert error.pos == len(block) // 2
    assert "is negative" in str(refused(message(magic, -1, b"v")))


@MAGICS
def test_offsets_up_to_the_largest(decode, refused, implementation, magic):
    decoded = decode(message(magic, INT64_MAX - 1, b"v"), stop=INT64_MAX)
    assert (decoded.rows, decoded.next_offset) == (1, INT64_MAX)
    beyond = wrapper(magic, INT64_MAX, message(magic, 0, b"v"), codec=GZIP)
    assert "beyond 64 bits" in str(refused(beyond, stop=INT64_MAX))
    with pytest.raises(CorruptRecords, match="beyond 64 bits"):
        implementation.skim(message(magic, INT64_MAX, b"v"))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_as_large_as_the_limit(decode, refused, magic):
    """What counts is its key and value: one taken for cut would end the rows without a word."""
    block = message(magic, 0, b"x" * 1995, b"key") + message(magic, 1, b"next")
    assert offsets(decode(block, batch_limit_bytes=1998)) == [0, 1]
    assert type(refused(block, batch_limit_bytes=1997)) is BatchTooLarge


# All formats in one block

MIXED = (
    message(0, 0, b"v0")
    + wrapper(0, 2, message_set(0, (1, 2)), codec=LZ4)
    + message(1, 3, b"v3")
    + wrapper(1, 5, message_set(1, (0, 1)), codec=SNAPPY)
    + encode_batch([NewRecord(b"v6", headers=[(b"h", b"1")]), NewRecord(b"v7")], base_offset=6)
    + message(1, 8, b"v8")
    + message(0, 9, b"v9")
)


def test_magics_0_1_and_2_in_one_block(decode, implementation):
    decoded = decode(MIXED)
    assert offsets(decoded) == list(range(10))
    assert [row.timestamp_type for row in rows_of(decoded)] == [-1] * 3 + [0] * 6 + [-1]
    assert [row.headers for row in rows_of(decoded) if row.headers] == [((b"h", b"1"),)]
    assert implementation.skim(MIXED) == (10, len(MIXED), 7, 0, -1)
    assert (decoded.next_offset, decoded.pos, decoded.batches) == (10, len(MIXED), 7)


@pytest.mark.parametrize("chunk_bytes", [1, 60, 100])
def test_mixed_chunks_have_all_rows(decode, chunk_bytes):
    got, pos, start = [], 0, 0
    while pos < len(MIXED):
        decoded = decode(MIXED, pos=pos, start=start, chunk_bytes=chunk_bytes)
        got += offsets(decoded)
        pos, start = decoded.pos, decoded.next_offset
    assert got == list(range(10))


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_skim_reads_the_end_of_a_wrapper(implementation, codec):
    block = wrapper(1, 5, message_set(1, range(3)), codec=codec)
    assert implementation.skim(block) == (6, len(block), 1, 0, -1)


@pytest.mark.parametrize("magic", [0, 1])
def test_skim_cannot_see_into_a_wrapper_as_a_producer_sends_it(implementation, magic):
    """Its offset is 0 whatever is in it; `client/reading/decode.py` refuses it in an answer."""
    block = wrapper(magic, 0, message_set(magic, range(3)), codec=GZIP)
    assert implementation.skim(block).next_offset == 1
    decoded = implementation.decode(block, start=0, stop=9, wanted=Columns.OFFSET)
    assert decoded.next_offset == 3
