"""The reference encoder, against bytes written down by hand and by the decoder's reading."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.encoding import zigzag
from pyspark_kafkaproto.records.layout import CONTROL, HEADER, TRANSACTIONAL


def test_a_batch_byte_by_byte():
    batch = encode_batch(
        [NewRecord(b"v", b"k", 1000, [(b"h", None)]), NewRecord(None, None, 1002)],
        base_offset=5,
        leader_epoch=3,
        producer_id=77,
        producer_epoch=2,
        base_sequence=9,
        attributes=TRANSACTIONAL,
    )
    assert (
        batch.hex(" ")
        == (
            "00 00 00 00 00 00 00 05 00 00 00 44 00 00 00 03 02 "  # offset, length, epoch, magic
            + batch[17:21].hex(" ")  # CRC, read back by the decoder's tests
            + " 00 10 00 00 00 01 "  # attributes, last offset delta
            "00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 ea "  # base and max timestamp
            "00 00 00 00 00 00 00 4d 00 02 00 00 00 09 00 00 00 02 "  # producer, sequence, count
            "16 00 00 00 02 6b 02 76 02 02 68 01 "  # a record with one header
            "0c 00 04 02 01 01 00"  # a record of nulls
        )
    )


def test_the_fields_of_the_header():
    batch = encode_batch([NewRecord(b"v", timestamp_ms=7)], codec=4, attributes=CONTROL)
    fields = HEADER.unpack_from(batch)
    assert fields[1] == len(batch) - 12
    assert fields[5] == CONTROL | 4
    assert fields[7:9] == (7, 7)
    assert fields[9:12] == (-1, -1, -1)


def test_an_empty_batch_has_a_header_alone():
    assert HEADER.unpack_from(encode_batch([], base_offset=4, last_offset_delta=6))[6:] == (
        6, -1, -1, -1, -1, -1, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_zigzag_varints(number, expected):
    assert zigzag(number).hex() == expected
