"""What batch headers alone say, before anything is decoded."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.unit.records.batches import with_fields
from tests.unit.records.messages import message

FIRST = encode_batch([NewRecord(b"a"), NewRecord(b"b")], base_offset=10, leader_epoch=4)
SECOND = encode_batch([], base_offset=12, last_offset_delta=7, leader_epoch=5)
BLOCK = FIRST + SECOND


@pytest.fixture
def skim(implementation):
    return implementation.skim


def test_an_empty_block_has_no_batch(skim):
    assert skim(b"") == (None, 0, 0, 0, -1)


def test_all_headers_of_a_block_are_read(skim):
    assert skim(BLOCK) == (20, len(BLOCK), 2, 0, 5)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_epoch_is_the_last_batchs_which_an_old_message_has_none_of(skim, magic):
    block = BLOCK + message(magic, 20, b"old")
    assert skim(block) == (21, len(block), 3, 0, -1)


def test_what_lies_before_the_position_is_not_read(skim):
    assert skim(BLOCK, len(FIRST)) == (20, len(BLOCK), 1, 0, 5)


def test_a_cut_batch_tells_its_size_once_it_is_there(skim):
    for end in range(len(FIRST), len(BLOCK)):
        missing = len(SECOND) if end - len(FIRST) >= 12 else 0
        assert skim(BLOCK[:end]) == (12, len(FIRST), 1, missing, 4), end


def test_nothing_whole_has_no_next_offset(skim):
    assert skim(FIRST[:40]) == (None, 0, 0, len(FIRST), -1)


def test_it_agrees_with_decoding(skim, decode):
    decoded = decode(BLOCK, start=10)
    assert skim(BLOCK)[:3] == (decoded.next_offset, decoded.pos, decoded.batches)


def test_neither_crc_nor_records_are_looked_at(skim):
    damaged = bytearray(FIRST)
    damaged[17] ^= 1
    damaged[-1] ^= 1
    assert skim(damaged).next_offset == 12


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"length": -1}, "length is -1"),
        ({"length": 48}, "length is 48"),
        ({"magic": 3}, "magic is 3"),
        ({"magic": 9}, "magic is 9"),
        ({"base_offset": -5}, "negative"),
        ({"base_offset": 11}, "begins at offset 11"),
        ({"last_offset_delta": -1}, "negative"),
        ({"base_offset": 2**63 - 3}, "beyond 64 bits"),
    ],
)
def test_a_header_that_no_batch_has(skim, fields, reason):
    with pytest.raises(CorruptRecords, match=reason) as caught:
        skim(FIRST + with_fields(SECOND, **fields))
    assert caught.value.pos == len(FIRST)


def test_a_position_outside_the_block(skim):
    with pytest.raises(ValueError, match="outside the block"):
        skim(BLOCK, len(BLOCK) + 1)
