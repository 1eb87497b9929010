"""A block in several calls: the same rows, and memory bounded by a chunk and a batch."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BatchTooLarge
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.unit.records.batches import rows_of

BLOCK = b"".join(
    encode_batch([NewRecord(b"%02d" % (first + i) * 20) for i in range(10)], base_offset=first)
    for first in range(0, 100, 10)
)


def in_chunks(decode, chunk_bytes: int, start: int = 0, stop: int = 2**62):
    chunks, pos = [], 0
    while pos < len(BLOCK) and start < stop:
        chunks.append(decode(BLOCK, pos=pos, start=start, stop=stop, chunk_bytes=chunk_bytes))
        pos, start = chunks[-1].pos, chunks[-1].next_offset
    return chunks


@pytest.mark.parametrize("chunk_bytes", [0, 1, 1000, 1500, 10**9])
def test_chunks_have_all_rows_in_order(decode, chunk_bytes):
    chunks = in_chunks(decode, chunk_bytes)
    assert [row for chunk in chunks for row in rows_of(chunk)] == rows_of(decode(BLOCK))
    assert sum(chunk.batches for chunk in chunks) == 10


def test_a_chunk_ends_after_the_batch_that_passes_it(decode):
    assert [chunk.batches for chunk in in_chunks(decode, 1)] == [1] * 10
    batch_bytes = decode(BLOCK, chunk_bytes=1).decompressed_bytes
    assert [chunk.batches for chunk in in_chunks(decode, batch_bytes + 1)][:2] == [2, 2]


def test_what_was_passed_over_adds_up(decode):
    block_stop = 95
    chunks = in_chunks(decode, 1, start=5, stop=block_stop)
    assert sum(chunk.rows + chunk.passed_over for chunk in chunks) == block_stop - 5


def test_sizes_are_told(decode):
    whole, parts = decode(BLOCK), in_chunks(decode, 1)
    assert whole.decompressed_bytes == sum(part.decompressed_bytes for part in parts)
    assert whole.max_batch_bytes == max(part.decompressed_bytes for part in parts)


@pytest.mark.parametrize("sizes", [(10, 2000), (2000, 10)])
def test_the_largest_batch_is_told_wherever_it_is(decode, sizes):
    batches = [
        encode_batch([NewRecord(b"x" * size)], base_offset=offset)
        for offset, size in enumerate(sizes)
    ]
    assert decode(b"".join(batches)).max_batch_bytes == max(len(data) - 61 for data in batches)


def test_a_batch_over_the_limit_is_refused(refused):
    first = encode_batch([NewRecord(b"a")])
    error = refused(first + encode_batch([NewRecord(b"x" * 2000)], base_offset=1),
                    batch_limit_bytes=1000)  # fmt: skip
    assert type(error) is BatchTooLarge
    assert "more than the limit of 1000" in str(error)
    assert error.pos == len(first)


def test_a_batch_as_large_as_the_limit(decode, refused):
    block = encode_batch([NewRecord(b"x" * 2000)])
    size = decode(block).decompressed_bytes
    assert decode(block, batch_limit_bytes=size).rows == 1
    assert type(refused(block, batch_limit_bytes=size - 1)) is BatchTooLarge
