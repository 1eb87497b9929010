"""What the kernel reads in one go (`_plain.pxd`), what it does not, and both beside each other."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import LOG_APPEND_TIME

VALUE = bytes(range(100))
PLAIN = NewRecord(VALUE, b"key", 1_700_000_000_000)
SIZES = [None, 0, 1, 31, 63, 64, 300, 8191, 8192]  # of which one byte tells, two or three


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["key", "value"])
def test_sizes_that_take_more_and_more_bytes(rows, name, size):
    filling = None if size is None else (VALUE * (size // 100 + 1))[:size]
    records = [PLAIN, PLAIN._replace(**{name: filling}), PLAIN]
    first, middle, last = rows(encode_batch(records))
    assert (middle.key, middle.value) == (records[1].key, records[1].value)
    assert (first.key, first.value) == (last.key, last.value) == (b"key", VALUE)


@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", VALUE])
def test_nulls_among_many(rows, key, value):
    records = [PLAIN if index % 7 else PLAIN._replace(key=key, value=value) for index in range(300)]
    found = [(row.key, row.value, row.headers) for row in rows(encode_batch(records))]
    assert found == [(record.key, record.value, None) for record in records]


@pytest.mark.parametrize("far", [1, 63, 64, 8191, 8192])
def test_offsets_with_holes(rows, far):
    records = [PLAIN._replace(offset_delta=delta) for delta in (0, far, far + 1)]
    block = encode_batch(records, base_offset=5, last_offset_delta=far + 4)
    assert [row.offset for row in rows(block)] == [5, far + 5, far + 6]


@pytest.mark.parametrize("late", [0, 63, 64, -64, -65, 8191, 8192, -8192, -8193])
def test_times_after_the_first_one_and_before(rows, late):
    times = [PLAIN.timestamp_ms, PLAIN.timestamp_ms + late, PLAIN.timestamp_ms]
    block = encode_batch([PLAIN._replace(timestamp_ms=time) for time in times])
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(block)] == [
        (time * 1000, 0) for time in times
    ]


def test_the_brokers_time_is_that_of_all(rows):
    late = PLAIN._replace(timestamp_ms=PLAIN.timestamp_ms + 50)
    block = encode_batch([PLAIN, late, PLAIN], attributes=LOG_APPEND_TIME, max_timestamp_ms=777)
    assert [(row.timestamp_us, row.timestamp_type) for row in rows(block)] == [(777_000, 1)] * 3


@pytest.mark.parametrize("every", [1, 2, 3, 50])
def test_some_have_headers(rows, every):
    headers = [(b"h", b"1"), (b"", None)]
    records = [PLAIN if index % every else PLAIN._replace(headers=headers) for index in range(100)]
    found = [(row.offset, row.value, row.headers) for row in rows(encode_batch(records))]
    assert found == [
        (index, VALUE, None if index % every else tuple(headers)) for index in range(100)
    ]


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (0, 9), (1, 10), (3, 4), (9, 10)])
def test_a_range_within(rows, start, stop):
    found = rows(encode_batch([PLAIN] * 10), start=start, stop=stop)
    assert [row.offset for row in found] == list(range(start, stop))


def test_batches_follow_each_other(rows):
    block = b"".join(
        encode_batch([PLAIN._replace(key=None if base else b"key")] * 3, base_offset=base)
        for base in (0, 3, 9)
    )
    assert [(row.offset, row.key) for row in rows(block)] == [
        (0, b"key"), (1, b"key"), (2, b"key"),
        *((offset, None) for offset in (3, 4, 5, 9, 10, 11)),
    ]  # fmt: skip
