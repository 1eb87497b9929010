"""The fields of a record: what they become, and what no record has."""

from __future__ import annotations

import struct

import pytest

from pyspark_kafkaproto.errors import TimestampOutOfRange
from pyspark_kafkaproto.records import Columns, NewRecord, encode_batch
from pyspark_kafkaproto.records.encoding import zigzag
from pyspark_kafkaproto.records.layout import (
    DELETE_HORIZON,
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    LOG_APPEND_TIME,
)
from tests.examples import first
from tests.unit.records.batches import raw_batch, raw_record, rows_of, with_fields

DAY_MS = 86_400_000
# A record with key "k", value "v" and no headers, in pieces that tests replace.
SOUND = {
    "attributes": b"\x00",
    "timestamp": zigzag(0),
    "offset": zigzag(0),
    "key": zigzag(1) + b"k",
    "value": zigzag(1) + b"v",
    "headers": zigzag(0),
}


def content(**pieces: bytes) -> bytes:
    return b"".join((SOUND | pieces).values())


def one(record: bytes, **fields: int) -> bytes:
    return raw_batch(record, 1, **fields)


def test_every_field_of_a_row(rows):
    record = NewRecord(b"value", b"key", 1_700_000_000_123, [(b"h", b"1")])
    (row,) = rows(encode_batch([record], base_offset=42))
    assert row == (42, 1_700_000_000_123_000, 0, b"key", b"value", ((b"h", b"1"),))


def test_the_bytes_of_a_record_by_hand(rows):
    (row,) = rows(one(raw_record(content())))
    assert row == (0, 0, 0, b"k", b"v", None)


@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_null_is_not_empty(rows, key, value):
    block = encode_batch([NewRecord(value, key), NewRecord(b"x", b"y"), NewRecord(value, key)])
    assert [(row.key, row.value) for row in rows(block)] == [
        (key, value), (b"y", b"x"), (key, value),
    ]  # fmt: skip


@pytest.mark.parametrize("nulls", ["first", "last", "all"])
@pytest.mark.parametrize("count", first(3, [1, 8, 9, 7, 2500]))
def test_nulls_wherever_they_are(rows, nulls, count):
    keys = [b"k"] * count
    chosen = {"first": [0], "last": [-1], "all": range(count)}[nulls]
    for index in chosen:
        keys[index] = None
    block = encode_batch([NewRecord(b"", key) for key in keys])
    assert [row.key for row in rows(block)] == keys


def test_no_null_no_bitmap(decode):
    decoded = decode(encode_batch([NewRecord(b"v", b"k", headers=[(b"h", b"1")])]))
    validities = (decoded.key.validity, decoded.value.validity, decoded.headers.validity)
    assert validities == (None, None, None)


# Sizes at which a varint grows a byte (64, 8192, 1048576 with the sign bit), at which other
# clients have failed (32760, 98296), and around the blocks in which the kernel copies.
SIZES = [0, 1, 31, 32, 33, 63, 64, 255, 256, 257, 8191, 8192, 32760, 65535, 65536, 98296, 1048576]


@pytest.mark.parametrize("size", first(8, SIZES))
def test_sizes_at_the_edges(rows, size):
    filling = (bytes(range(251)) * (size // 251 + 1))[:size]
    block = encode_batch(
        [NewRecord(filling, filling, headers=[(filling, filling)]), NewRecord(b"next")]
    )
    first, second = rows(block)
    assert (first.key, first.value, first.headers) == (filling, filling, ((filling, filling),))
    assert second.value == b"next"


def test_headers_keep_order_duplicates_nulls_and_empties(rows):
    headers = [(b"a", b"1"), (b"a", None), (b"", b""), (b"a", b"1"), (b"\xff\xfe", b"\x00")]
    block = encode_batch([NewRecord(b"x", headers=headers), NewRecord(b"y")])
    assert [row.headers for row in rows(block)] == [tuple(headers), None]


@pytest.mark.parametrize("size", [225, 256])
def test_headers_before_another_record(rows, size):
    """Whole blocks are copied, beyond what was asked for: a sanitizer sees where there is none."""
    headers = [(b"k", bytes([index]) * size) for index in range(3)]
    block = encode_batch([NewRecord(b"x", headers=headers), NewRecord(b"y" * 100)])
    assert [row.headers for row in rows(block)] == [tuple(headers), None]


@pytest.mark.slow
def test_many_headers(rows):
    headers = [(b"%d" % index, None if index % 3 else b"v") for index in range(5000)]
    block = encode_batch([NewRecord(b"x"), NewRecord(b"y", headers=headers), NewRecord(b"z")])
    assert [row.headers for row in rows(block)] == [None, tuple(headers), None]


# Timestamps


@pytest.mark.parametrize("delta", [0, 1, -1, 25 * DAY_MS, -25 * DAY_MS, 2**31, 2**40, -(2**40)])
def test_timestamp_deltas_of_any_size(rows, delta):
    base = 1_700_000_000_999
    block = encode_batch([NewRecord(b"", timestamp_ms=base), NewRecord(b"", None, base + delta)])
    assert rows(block)[1].timestamp_us == (base + delta) * 1000


def test_the_timestamp_of_none_is_kept(rows):
    assert rows(encode_batch([NewRecord(b"", timestamp_ms=-1)]))[0].timestamp_us == -1000


def test_log_append_time_is_the_batches_for_all_rows(rows):
    records = [NewRecord(b"a", timestamp_ms=5), NewRecord(b"b", timestamp_ms=9)]
    block = encode_batch(records, attributes=LOG_APPEND_TIME, max_timestamp_ms=777)
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(block)] == [(777_000, 1)] * 2


def test_a_delete_horizon_is_what_deltas_are_relative_to(rows):
    # KIP-534: the cleaner writes the horizon as base timestamp and the deltas against it.
    block = encode_batch(
        [NewRecord(b"a", timestamp_ms=1000)],
        attributes=DELETE_HORIZON,
        base_timestamp_ms=1_800_000_000_000,
    )
    assert rows(block)[0].timestamp_us == 1_000_000


LARGEST_MS = INT64_MAX // 1000


@pytest.mark.parametrize("timestamp_ms", [LARGEST_MS, -LARGEST_MS])
def test_the_largest_timestamps(rows, timestamp_ms):
    block = encode_batch([NewRecord(b"", timestamp_ms=timestamp_ms)])
    assert rows(block)[0].timestamp_us == timestamp_ms * 1000


@pytest.mark.parametrize(
    ("base", "delta"),
    [
        (LARGEST_MS + 1, 0),
        (-LARGEST_MS - 1, 0),
        (LARGEST_MS, 1),
        (INT64_MAX, INT64_MAX),
        (INT64_MIN, INT64_MIN),
        (INT64_MIN, -1),
        (INT64_MAX, 1),
    ],
)
def test_a_timestamp_that_microseconds_cannot_say(decode, refused, base, delta):
    block = one(raw_record(content(timestamp=zigzag(delta))), base_timestamp=base)
    error = refused(block)
    assert type(error) is TimestampOutOfRange
    assert "timestamp in microseconds does not fit" in str(error)
    assert decode(block, wanted=Columns.VALUE).rows == 1


@pytest.mark.parametrize(("base", "delta"), [(INT64_MAX, -INT64_MAX), (INT64_MIN, INT64_MAX)])
def test_a_delta_may_be_as_large_as_it_can(rows, base, delta):
    block = one(raw_record(content(timestamp=zigzag(delta))), base_timestamp=base)
    assert rows(block)[0].timestamp_us == (base + delta) * 1000


def test_a_log_append_time_that_microseconds_cannot_say(refused):
    block = one(raw_record(content()), attributes=LOG_APPEND_TIME, max_timestamp=LARGEST_MS + 1)
    assert "timestamp" in str(refused(block))


# The number of records


@pytest.mark.parametrize("count", [-1, -(2**31), 2**31 - 1, 1000, 2])
def test_a_number_of_records_that_the_bytes_cannot_hold(refused, count):
    block = encode_batch([NewRecord(b"v")])
    assert f"cannot hold {count} records" in str(refused(with_fields(block, record_count=count)))


def test_more_records_than_said(refused):
    block = encode_batch([NewRecord(b"a"), NewRecord(b"b")])
    assert "bytes follow its 1 records" in str(refused(with_fields(block, record_count=1)))
    assert "bytes follow its 0 records" in str(refused(with_fields(block, record_count=0)))


def test_fewer_records_than_said(refused):
    records = [NewRecord(b"a" * 50), NewRecord(b"b" * 50)]
    error = refused(with_fields(encode_batch(records, last_offset_delta=9), record_count=3))
    assert "record 2 of 3: a varint runs past" in str(error)


# What no record has

FAULTS = {
    "length negative": (raw_record(content(), size=-1), "length is negative"),
    "length past the batch": (raw_record(content(), size=100), "length is negative or runs past"),
    "length near the largest": (raw_record(content(), size=INT32_MAX), "runs past the end of the"),
    "length too small": (raw_record(content(), size=7), "a varint runs past"),
    "length too large": (raw_record(content() + b"\x00"), "does not agree with its content"),
    "length zero": (raw_record(b"") + b"\x00" * 7, "a varint runs past"),
    "varint of six bytes": (b"\x80" * 5 + b"\x00" + content(), "does not fit its 32 or 64"),
    "varint of 33 bits": (b"\xff\xff\xff\xff\x1f" + content(), "does not fit its 32 or 64"),
    "varlong of eleven bytes": (
        raw_record(content(timestamp=b"\x80" * 10 + b"\x00")),
        "does not fit its 32 or 64",
    ),
    "varlong of 65 bits": (
        raw_record(content(timestamp=b"\xff" * 9 + b"\x02")),
        "does not fit its 32 or 64",
    ),
    "offset of six bytes": (
        raw_record(content(offset=b"\x80" * 5 + b"\x00")),
        "does not fit its 32 or 64",
    ),
    "key below null": (raw_record(content(key=zigzag(-2))), "length of a key or value"),
    "key past the record": (raw_record(content(key=zigzag(99) + b"k")), "length of a key or value"),
    "key near the largest": (
        raw_record(content(key=zigzag(INT32_MAX) + b"k")),
        "length of a key or value",
    ),
    "value below null": (raw_record(content(value=zigzag(-(2**31)))), "length of a key or value"),
    "value past the record": (
        raw_record(content(value=zigzag(3) + b"v")),
        "length of a key or value",
    ),
    "headers negative": (raw_record(content(headers=zigzag(-1))), "number of headers"),
    "headers near the largest": (raw_record(content(headers=zigzag(INT32_MAX))), "number of head"),
    "headers missing": (raw_record(content(headers=zigzag(1))), "number of headers"),
    "header cut": (raw_record(content(headers=zigzag(1) + zigzag(1) + b"h")), "a varint runs past"),
    "header key null": (
        raw_record(content(headers=zigzag(1) + zigzag(-1) + zigzag(-1))),
        "header key is null",
    ),
    "header key past the record": (
        raw_record(content(headers=zigzag(1) + zigzag(9) + b"h")),
        "header key is null or runs past",
    ),
    "header value below null": (
        raw_record(content(headers=zigzag(1) + zigzag(1) + b"h" + zigzag(-2))),
        "length of a key or value",
    ),
    "header value past the record": (
        raw_record(content(headers=zigzag(1) + zigzag(1) + b"h" + zigzag(5))),
        "length of a key or value",
    ),
}


@pytest.mark.parametrize("name", first(12, FAULTS))
def test_what_no_record_has(refused, name):
    record, reason = FAULTS[name]
    error = refused(one(record, base_offset=30), start=30)
    assert "record 0 of 1: " in str(error)
    assert reason in str(error)
    assert error.base_offset == 30


@pytest.mark.parametrize("wanted", [Columns(0), Columns.OFFSET])
def test_records_are_checked_whatever_is_wanted(refused, wanted):
    record, reason = FAULTS["header cut"]
    assert reason in str(refused(one(record), wanted=wanted))


def test_a_record_outside_the_range_is_checked_too(refused):
    damaged = raw_record(content(offset=zigzag(1), key=zigzag(-2)))
    block = raw_batch(raw_record(content()) + damaged, 2)
    assert "record 1 of 2: the length of a key" in str(refused(block, stop=1))


def test_a_batch_that_ends_inside_a_record_length(refused):
    block = raw_batch(raw_record(content(value=zigzag(9) + b"v" * 9)) + b"\x80" * 4, 2)
    assert "record 1 of 2: a varint runs past" in str(refused(block))


def test_overlong_varints_are_numbers_all_the_same(rows):
    block = one(raw_record(content(offset=b"\x80\x80\x80\x80\x00", key=b"\x82\x00k")))
    assert rows(block)[0].key == b"k"


def test_record_attributes_mean_nothing(rows):
    assert rows(one(raw_record(content(attributes=b"\xff"))))[0].value == b"v"


# Columns


@pytest.mark.parametrize("column", list(Columns))
def test_only_what_is_wanted_is_built(decode, column):
    block = encode_batch([NewRecord(b"v", b"k", 5, [(b"h", None)])])
    decoded = decode(block, wanted=column)
    names = ("offsets", "timestamps", "timestamp_types", "key", "value", "headers")
    built = [name for name in names if getattr(decoded, name) is not None]
    assert built == [names[list(Columns).index(column)]]
    assert rows_of(decoded)[0] != (None,) * 6


def test_no_column_wanted_counts_rows(decode):
    block = encode_batch([NewRecord(b"v")] * 9)
    decoded = decode(block, start=2, stop=7, wanted=Columns(0))
    assert (decoded.rows, decoded.next_offset) == (5, 7)


def test_the_columns_outlive_the_block(decode):
    block = bytearray(encode_batch([NewRecord(b"value", b"key")] * 3))
    decoded = decode(block)
    before = rows_of(decoded)
    block[:] = struct.pack("B", 0xAA) * len(block)
    assert rows_of(decoded) == before
