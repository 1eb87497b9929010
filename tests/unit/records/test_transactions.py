"""Who is left out under read_committed (KIP-98), and that markers are never rows."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import ABORT_MARKER, COMMIT_MARKER, CONTROL, TRANSACTIONAL
from tests.unit.records.batches import rows_of


def data(base_offset: int, value: bytes, producer_id: int, attributes: int = TRANSACTIONAL):
    return encode_batch(
        [NewRecord(value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        attributes=attributes,
    )


def marker(base_offset: int, kind: int, producer_id: int, key: bytes | None = b""):
    """An end marker; `key` in place of the right one when given."""
    key = (0).to_bytes(2) + kind.to_bytes(2, signed=True) if key == b"" else key
    return encode_batch(
        [NewRecord(b"\x00" * 6, key)],
        base_offset=base_offset,
        producer_id=producer_id,
        attributes=TRANSACTIONAL | CONTROL,
    )


def values(decoded) -> list[bytes]:
    return [row.value for row in rows_of(decoded)]


ABORTED_THEN_COMMITTED = (
    data(0, b"aborted", 5)
    + marker(1, ABORT_MARKER, 5)
    + data(2, b"committed", 5)
    + marker(3, COMMIT_MARKER, 5)
)
ABORTED_AGAIN = (
    ABORTED_THEN_COMMITTED
    + data(4, b"aborted", 5)
    + data(5, b"other", 6)
    + data(6, b"aborted, too", 5)
    + marker(7, ABORT_MARKER, 5)
)


def test_control_batches_are_never_rows(decode):
    block = data(0, b"a", 5) + marker(1, COMMIT_MARKER, 5)
    decoded = decode(block)
    assert values(decoded) == [b"a"]
    assert (decoded.next_offset, decoded.passed_over) == (2, 1)


def test_read_uncommitted_has_aborted_rows_and_no_markers(decode):
    assert values(decode(ABORTED_THEN_COMMITTED)) == [b"aborted", b"committed"]


def test_a_producer_that_aborts_then_commits(decode):
    decoded = decode(ABORTED_THEN_COMMITTED, aborted=[(5, 0)])
    assert values(decoded) == [b"committed"]
    assert (decoded.next_offset, decoded.passed_over) == (4, 3)


@pytest.mark.parametrize("first_offset", [0, 1, 2])
def test_a_transaction_that_begins_anywhere_in_a_batch_leaves_all_of_it_out(decode, first_offset):
    """As the Java client, which looks at the last offset of a batch."""
    batch = encode_batch([NewRecord(b"a")] * 3, producer_id=5, attributes=TRANSACTIONAL)
    decoded = decode(batch + data(3, b"behind", 6), aborted=[(5, first_offset)])
    assert values(decoded) == [b"behind"]


def test_a_control_batch_without_records_ends_nothing(decode):
    """As compaction leaves it."""
    empty = encode_batch(
        [], base_offset=1, last_offset_delta=0, producer_id=5, attributes=TRANSACTIONAL | CONTROL
    )
    block = data(0, b"aborted", 5) + empty + data(2, b"aborted, too", 5) + data(3, b"other", 6)
    assert values(decode(block, aborted=[(5, 0)])) == [b"other"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (ABORTED_THEN_COMMITTED, [b"committed"]),
        (ABORTED_AGAIN, [b"committed", b"other"]),
    ],
    ids=["once", "again"],
)
def test_the_state_is_carried_from_chunk_to_chunk(decode, block, expected):
    """Also that of what aborts behind the first chunk, or is in the midst of it at an end."""
    got, pos, start, aborted = [], 0, 0, [(5, 0), (5, 4)]
    while pos < len(block):
        decoded = decode(block, pos=pos, start=start, aborted=aborted, chunk_bytes=1)
        got += values(decoded)
        pos, start, aborted = decoded.pos, decoded.next_offset, decoded.aborted
    assert got == expected


def test_what_the_caller_holds_does_not_change(decode):
    first = decode(ABORTED_THEN_COMMITTED, aborted=[(5, 0)], chunk_bytes=1)
    again = [
        values(decode(ABORTED_THEN_COMMITTED, pos=first.pos, aborted=first.aborted))
        for _ in range(2)
    ]
    assert again == [[b"committed"], [b"committed"]]


def test_the_list_may_be_unsorted(decode):
    block = (
        data(0, b"x", 5)
        + marker(1, ABORT_MARKER, 5)
        + data(2, b"kept", 5)
        + marker(3, COMMIT_MARKER, 5)
        + data(4, b"y", 5)
        + marker(5, ABORT_MARKER, 5)
    )
    assert values(decode(block, aborted=[(5, 4), (9, 2), (5, 0)])) == [b"kept"]


def test_producers_are_told_apart(decode):
    block = data(0, b"a", 5) + data(1, b"b", 6) + marker(2, ABORT_MARKER, 5) + data(3, b"c", 6)
    assert values(decode(block, aborted=[(5, 0)])) == [b"b", b"c"]


def test_a_transaction_that_began_before_the_block(decode):
    block = data(100, b"a", 5) + marker(101, ABORT_MARKER, 5) + data(102, b"b", 5)
    assert values(decode(block, start=100, aborted=[(5, 40)])) == [b"b"]


def test_a_marker_before_the_start_ends_its_transaction(decode):
    decoded = decode(ABORTED_THEN_COMMITTED, start=2, aborted=[(5, 0)])
    assert values(decoded) == [b"committed"]
    assert (decoded.next_offset, decoded.passed_over) == (4, 1)


def test_an_idempotent_batch_of_an_aborted_producer_stays(decode):
    block = data(0, b"aborted", 5) + data(1, b"idempotent", 5, attributes=0)
    assert values(decode(block, aborted=[(5, 0)])) == [b"idempotent"]


def test_a_batch_without_producer_is_never_aborted(decode):
    block = data(0, b"a", 5) + data(1, b"b", -1)
    assert values(decode(block, aborted=[(5, 0), (-1, 0)])) == [b"b"]


def test_a_commit_marker_ends_no_aborted_transaction(decode):
    block = marker(0, COMMIT_MARKER, 5) + data(1, b"a", 5)
    assert values(decode(block, aborted=[(5, 0)])) == []


def test_a_control_batch_of_no_producer_ends_nothing_whatever_its_key_is(decode):
    for key in (b"", None, b"\0\0\0\0"):
        block = data(0, b"aborted", 5) + marker(1, ABORT_MARKER, -1, key) + data(2, b"too", 5)
        assert values(decode(block, aborted=[(5, 0)])) == []


def test_an_unknown_marker_is_passed_over(decode):
    assert values(decode(marker(0, 9, 5) + data(1, b"a", 6), aborted=[(5, 0)])) == [b"a"]


def test_an_aborted_batch_is_not_decompressed_but_its_crc_is_checked(decode, refused):
    damaged = bytearray(data(0, b"aborted", 5))
    damaged[-3] ^= 1
    assert "CRC" in str(refused(damaged, aborted=[(5, 0)]))
    assert decode(damaged, aborted=[(5, 0)], check_crcs=False).rows == 0


@pytest.mark.parametrize("key", [None, b"\x00", b"\x00\x00\x00"])
def test_a_marker_without_a_type(decode, refused, key):
    block = marker(0, ABORT_MARKER, 5, key)
    assert "needs a key of 4 bytes" in str(refused(block, aborted=[(5, 0)]))
    assert decode(block).rows == 0


def test_a_marker_of_negative_version(refused):
    error = refused(marker(0, 0, 5, b"\xff\xff\x00\x00"), aborted=[(5, 0)])
    assert "negative version -1" in str(error)


def test_a_damaged_control_record(refused):
    block = bytearray(marker(0, ABORT_MARKER, 5))
    block[-1] = 0x02  # one header, of which nothing is there
    assert "headers" in str(refused(block, check_crcs=False))
