"""Where batches begin and end in a block, and what is done with bytes that are none."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BatchTooLarge
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import HEADER_SIZE, INT32_MAX
from tests.unit.records.batches import rows_of, with_fields

FIRST = encode_batch([NewRecord(b"a"), NewRecord(b"b")])
SECOND = encode_batch([NewRecord(b"c")], base_offset=2)
BLOCK = FIRST + SECOND


def test_an_empty_block_has_no_rows(decode):
    decoded = decode(b"", start=7)
    assert (decoded.rows, decoded.pos, decoded.next_offset) == (0, 0, 7)
    assert rows_of(decoded) == []


def test_batches_follow_each_other(decode):
    decoded = decode(BLOCK)
    assert [row.value for row in rows_of(decoded)] == [b"a", b"b", b"c"]
    assert [row.offset for row in rows_of(decoded)] == [0, 1, 2]
    assert (decoded.pos, decoded.next_offset, decoded.batches) == (len(BLOCK), 3, 2)


@pytest.mark.parametrize("container", [bytes, bytearray, memoryview])
def test_a_block_is_anything_with_the_buffer_protocol(rows, container):
    assert len(rows(container(BLOCK))) == 3


def test_a_batch_cut_by_the_end_of_the_block_is_left_alone(decode):
    for end in range(len(FIRST), len(BLOCK)):
        decoded = decode(BLOCK[:end])
        assert (decoded.rows, decoded.pos, decoded.next_offset) == (2, len(FIRST), 2), end


def test_nothing_whole_is_nothing_read(decode):
    for end in range(len(FIRST)):
        decoded = decode(FIRST[:end], start=1)
        assert (decoded.rows, decoded.pos, decoded.next_offset) == (0, 0, 1), end


def test_reading_begins_at_the_position_given(decode):
    decoded = decode(BLOCK, pos=len(FIRST))
    assert [row.value for row in rows_of(decoded)] == [b"c"]


@pytest.mark.parametrize("pos", [len(BLOCK) + 1, 2**40])
def test_a_position_outside_the_block_is_a_mistake_of_the_caller(decode, pos):
    with pytest.raises(ValueError, match="outside the block"):
        decode(BLOCK, pos=pos)


def test_the_end_of_the_block_is_a_position(decode):
    assert decode(BLOCK, pos=len(BLOCK)).rows == 0


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 1, 13])
def test_a_length_that_no_batch_has(refused, length):
    error = refused(FIRST + with_fields(SECOND, length=length))
    assert f"length is {length}" in str(error)
    assert (error.pos, error.base_offset) == (len(FIRST), 2)


@pytest.mark.parametrize("length", [14, 48])
def test_a_length_below_the_header(refused, length):
    assert f"length is {length}, the least of magic 2 is 49" in str(
        refused(with_fields(FIRST, length=length))
    )


def test_a_negative_length_is_seen_in_a_fragment_too(refused):
    assert refused(with_fields(FIRST, length=-1, reseal=False)[:12]).pos == 0


def test_a_length_near_the_largest_is_over_the_limit(refused):
    error = refused(with_fields(FIRST, length=INT32_MAX))
    assert type(error) is BatchTooLarge
    assert "more than the limit" in str(error)


def test_a_length_near_the_largest_is_a_cut_batch_when_the_limit_allows_it(decode):
    decoded = decode(with_fields(FIRST, length=INT32_MAX), batch_limit_bytes=INT32_MAX)
    assert (decoded.rows, decoded.pos) == (0, 0)


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_an_unknown_magic_is_refused(refused, magic):
    assert f"magic is {magic}, unknown" in str(refused(with_fields(FIRST, magic=magic)))


def test_what_stands_before_a_corrupt_batch_is_sound(decode, refused):
    damaged = bytearray(BLOCK)
    damaged[-1] ^= 1
    error = refused(damaged)
    assert error.pos == len(FIRST)
    assert decode(damaged[: error.pos]).rows == 2


def test_no_bit_under_the_crc_may_be_wrong(refused):
    for pos in range(21, HEADER_SIZE):
        damaged = bytearray(FIRST)
        damaged[pos] ^= 0x10
        assert "CRC-32C" in str(refused(damaged)), pos


def test_a_wrong_crc_is_not_seen_when_not_looked_for(rows):
    damaged = bytearray(FIRST)
    damaged[17] ^= 1
    assert len(rows(damaged, check_crcs=False)) == 2


def test_the_leader_epoch_is_outside_the_crc(rows):
    assert len(rows(with_fields(FIRST, leader_epoch=77, reseal=False))) == 2


def test_the_upper_attribute_byte_means_nothing(rows):
    assert len(rows(with_fields(FIRST, attributes=0x4000))) == 2
