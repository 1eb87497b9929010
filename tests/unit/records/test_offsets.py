"""Which rows a range takes, and that the position never moves over what was not read."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import INT64_MAX
from tests.unit.records.batches import rows_of, with_fields


def batch(base_offset: int, *deltas: int, **options) -> bytes:
    records = [NewRecord(b"v", offset_delta=delta) for delta in deltas]
    return encode_batch(records, base_offset=base_offset, **options)


def offsets(decoded) -> list[int]:
    return [row.offset for row in rows_of(decoded)]


def test_a_batch_that_begins_before_the_start(decode):
    decoded = decode(batch(10, 0, 1, 2, 3), start=12)
    assert offsets(decoded) == [12, 13]
    assert (decoded.next_offset, decoded.passed_over) == (14, 0)


def test_a_batch_wholly_before_the_start(decode):
    decoded = decode(batch(10, 0, 1) + batch(12, 0), start=12)
    assert offsets(decoded) == [12]
    assert decoded.batches == 2


def test_a_block_wholly_before_the_start_moves_nothing(decode):
    decoded = decode(batch(10, 0, 1), start=100)
    assert (decoded.rows, decoded.next_offset, decoded.passed_over) == (0, 100, 0)


def test_the_stop_cuts_a_batch(decode):
    block = batch(10, 0, 1, 2, 3)
    decoded = decode(block, start=10, stop=12)
    assert offsets(decoded) == [10, 11]
    assert (decoded.next_offset, decoded.pos) == (12, len(block))


def test_nothing_is_read_behind_the_stop(decode):
    first = batch(10, 0, 1)
    decoded = decode(first + b"\xff" * 100, start=10, stop=12)
    assert (offsets(decoded), decoded.pos, decoded.next_offset) == ([10, 11], len(first), 12)


@pytest.mark.parametrize("base_offset", [15, 20])
def test_a_batch_behind_the_stop_says_that_the_range_is_read(decode, base_offset):
    first = batch(10, 0)
    decoded = decode(first + batch(base_offset, 0), start=10, stop=15)
    assert (offsets(decoded), decoded.pos, decoded.next_offset) == ([10], len(first), 15)
    assert decoded.passed_over == 4


@pytest.mark.parametrize("stop", [3, 5])
def test_a_range_that_is_over_reads_nothing(decode, stop):
    decoded = decode(batch(0, 0, 1), start=5, stop=stop)
    assert (decoded.rows, decoded.pos, decoded.next_offset) == (0, 0, 5)
    assert decoded.passed_over == 0


def test_compaction_leaves_holes(decode):
    decoded = decode(batch(10, 1, 5, last_offset_delta=9) + batch(25, 0), start=10)
    assert offsets(decoded) == [11, 15, 25]
    assert (decoded.next_offset, decoded.passed_over) == (26, 13)


def test_an_empty_batch_only_advances(decode):
    decoded = decode(batch(10, last_offset_delta=4), start=10)
    assert (decoded.rows, decoded.next_offset, decoded.passed_over) == (0, 15, 5)


@pytest.mark.parametrize("codec", range(5))
def test_an_empty_batch_needs_no_compressed_bytes(decode, codec):
    block = with_fields(batch(10, last_offset_delta=4), attributes=codec)
    assert decode(block).next_offset == 15


def test_offsets_up_to_the_largest(decode):
    base_offset = INT64_MAX - 2
    decoded = decode(batch(base_offset, 0, 1), start=0, stop=INT64_MAX)
    assert offsets(decoded) == [base_offset, base_offset + 1]
    assert decoded.next_offset == INT64_MAX


@pytest.mark.parametrize(
    ("base_offset", "last_offset_delta"),
    [(INT64_MAX - 1, 1), (INT64_MAX - 5, 2**31 - 1), (INT64_MAX - 4, 4)],
)
def test_base_and_delta_beyond_64_bits(refused, base_offset, last_offset_delta):
    block = with_fields(batch(0, 0), base_offset=base_offset, last_offset_delta=last_offset_delta)
    assert "beyond 64 bits" in str(refused(block, stop=INT64_MAX))


@pytest.mark.parametrize("delta", [-1, -(2**31)])
def test_a_negative_last_offset_delta(refused, delta):
    error = refused(with_fields(batch(7, 0), last_offset_delta=delta))
    assert f"last offset delta {delta} is negative" in str(error)


def test_a_negative_base_offset_is_refused(refused):
    assert "base offset -1 is negative" in str(refused(with_fields(batch(0, 0), base_offset=-1)))


def test_a_batch_that_steps_back_is_refused(refused):
    first = batch(10, 0, 1, 2)
    error = refused(first + batch(12, 0))
    assert "begins at offset 12, but the batch before it ends at 12" in str(error)
    assert (error.pos, error.base_offset) == (len(first), 12)


def test_a_batch_that_steps_back_behind_a_chunk(decode, refused):
    first = batch(10, 0, 1, 2)
    assert refused(first + batch(12, 0), chunk_bytes=1).pos == len(first)


@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (0, 2, 1)])
def test_record_offsets_that_do_not_rise(refused, deltas):
    error = refused(batch(10, *deltas, last_offset_delta=9))
    assert f"record {len(deltas) - 1} of {len(deltas)}: its offset" in str(error)


@pytest.mark.parametrize("delta", [-1, 5, 2**31 - 1, -(2**31)])
def test_a_record_offset_outside_its_batch(refused, delta):
    assert "record 0 of 1: its offset" in str(refused(batch(10, delta, last_offset_delta=4)))
