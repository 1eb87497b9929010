"""Columns to record batches, on both implementations, against the encoder of single records."""

from __future__ import annotations

import mmap
import random
from array import array
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.errors import InvalidRecord, LocalProtocolError
from pyspark_kafkaproto.records import (
    BinaryInput,
    Columns,
    HeadersInput,
    NewRecord,
    TimestampInput,
    WriteColumns,
    decode,
    encode_batch,
    restamped,
)
from pyspark_kafkaproto.records.compression import SNAPPY
from pyspark_kafkaproto.records.layout import HEADER, INT32_MAX, TRANSACTIONAL
from tests.examples import first
from tests.unit.records.batches import rows_of

NOW_MS = 1_700_000_000_000
LIMIT = 1 << 20
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def columns_of(values, keys=None, headers=None, micros=None) -> WriteColumns:
    arrays = {"value": pa.array(values, pa.binary())}
    if keys is not None:
        arrays["key"] = pa.array(keys, pa.binary())
    if headers is not None:
        arrays["headers"] = pa.array(headers, PAIRS)
    if micros is not None:
        arrays["at"] = pa.array(micros, pa.timestamp("us"))
    batch = pa.RecordBatch.from_pydict(arrays)
    return write_columns(batch, timestamp_column="at" if micros is not None else None)


@pytest.fixture
def encode(encoder):
    """All rows of some columns as one batch."""

    def encode_all(columns, *, indices=None, codec=0, level=None, **producer) -> bytes:
        builder = encoder.BatchBuilder(codec=codec, level=level, limit_bytes=INT32_MAX)
        count = columns.rows if indices is None else len(indices)
        assert builder.append(columns, indices, 0, NOW_MS) == count
        assert builder.rows == count
        return builder.finish(**producer)

    return encode_all


def at_now(*values: bytes | None) -> list[NewRecord]:
    return [NewRecord(value, timestamp_ms=NOW_MS) for value in values]


# --- records


def test_nulls_and_empty_bytes_differ(encode):
    columns = columns_of([b"v", b"", None, None], [None, b"k", b"", None])
    assert encode(columns) == encode_batch([
        NewRecord(b"v", None, NOW_MS), NewRecord(b"", b"k", NOW_MS),
        NewRecord(None, b"", NOW_MS), NewRecord(None, None, NOW_MS),
    ])  # fmt: skip


def test_columns_that_are_not_there_are_null(encode):
    assert encode(WriteColumns(2)) == encode_batch(at_now(None, None))


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9])
def test_rows_of_a_slice_are_those_that_it_shows(encode, start):
    """Arrow keeps the whole column, and says where the slice begins: in bits for what is null."""
    records = [
        NewRecord(
            b"v%d" % row if row % 5 else None,
            b"k%d" % row if row % 3 else None,
            1_000 * row if row % 4 else NOW_MS,
            [(b"h%d" % row, b"%d" % row if row % 7 else None)] if row % 2 else [],
        )
        for row in range(12)
    ]
    arrays = {
        "value": pa.array([record.value for record in records], pa.binary()),
        "key": pa.array([record.key for record in records], pa.binary()),
        "headers": pa.array([list(record.headers) or None for record in records], PAIRS),
        "at": pa.array(
            [1_000_000 * row if row % 4 else None for row in range(12)], pa.timestamp("us")
        ),
    }
    part = pa.RecordBatch.from_pydict(arrays).slice(start, 3)
    batch = encode(write_columns(part, timestamp_column="at"))
    assert batch == encode_batch(records[start : start + 3])


# Where the varint of a value's or a record's length gets a byte more, and where others went wrong.
BOUNDARIES = (63, 64, 8191, 8192, 32_760, 65_536, 98_296)
LARGE_BOUNDARIES = (1_048_575, 1_048_576)


@pytest.mark.parametrize(
    "size",
    first(len(BOUNDARIES), [*BOUNDARIES, *LARGE_BOUNDARIES]),
)
def test_lengths_around_a_varints_seven_bits(encode, size):
    values = [bytes(size - less) for less in range(14, -2, -1)]
    batch = encode(columns_of(values))
    assert batch == encode_batch(at_now(*values))
    decoded = decode(batch, start=0, stop=100, wanted=Columns.VALUE)
    assert [len(row.value) for row in rows_of(decoded)] == [len(value) for value in values]


def test_values_before_others_are_copied_in_blocks(encode):
    """As in reading: a sanitizer sees where there is no room for the last block."""
    values = [b"v" * 225, b"w" * 100]
    expected = [NewRecord(value, b"k" * 225, NOW_MS) for value in values]
    assert encode(columns_of(values, [b"k" * 225] * 2)) == encode_batch(expected)


@pytest.mark.slow
def test_offset_deltas_around_a_varints_seven_bits(encode):
    values = [b"x"] * 8200
    assert encode(columns_of(values)) == encode_batch(at_now(*values))


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("a", b"1")],
        [("", b""), ("", None), ("a", b"1"), ("a", b"1"), ("é", bytes(300))],
        [(f"key {index}", b"v" * index) for index in range(200)],
    ],
    ids=["null", "none", "one", "odd ones", "many"],
)
def test_headers_are_written_for_each_row(encode, headers):
    batch = encode(columns_of([b"v", b"w", b"x"], headers=[[("z", b"9")], headers, [("y", None)]]))
    pairs = [(key.encode(), value) for key, value in headers or ()]
    assert batch == encode_batch([
        NewRecord(b"v", None, NOW_MS, [(b"z", b"9")]), NewRecord(b"w", None, NOW_MS, pairs),
        NewRecord(b"x", None, NOW_MS, [(b"y", None)]),
    ])  # fmt: skip


def test_rows_in_the_order_of_the_indices(encode):
    columns = columns_of([b"0", b"1", b"2"])
    batch = encode(columns, indices=array("i", [2, 0, 0, 1]))
    assert batch == encode_batch(at_now(b"2", b"0", b"0", b"1"))


# --- timestamps


def test_microseconds_are_cut_to_milliseconds(encode):
    micros = [1_700_000_000_123_999, 1_700_000_000_123_000, 0, 999, 1000, 2**63 - 1]
    batch = encode(columns_of([b""] * 6, micros=micros))
    assert batch == encode_batch([NewRecord(b"", timestamp_ms=micro // 1000) for micro in micros])


def test_base_is_the_first_and_max_the_largest(encode):
    batch = encode(columns_of([b""] * 3, micros=[5_000_000, 9_000_000, 1_000_000]))
    assert HEADER.unpack_from(batch)[7:9] == (5000, 9000)


def test_rows_without_a_timestamp_get_the_time_of_writing(encode):
    batch = encode(columns_of([b""] * 3, micros=[None, 7000, None]))
    assert batch == encode_batch([NewRecord(b"", timestamp_ms=at) for at in (NOW_MS, 7, NOW_MS)])


@pytest.mark.parametrize("micros", [-1, -999, -1000, -(2**63)])
def test_a_time_before_1970_is_refused_with_its_row(encoder, micros):
    columns = columns_of([b"a", b"b", b"c"], micros=[1, micros, 3])
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    with pytest.raises(InvalidRecord, match=rf"^row 1: its timestamp, {micros} micro") as caught:
        builder.append(columns, array("i", [2, 0, 1, 2]), 0, NOW_MS)
    assert (caught.value.row, caught.value.position, builder.rows) == (1, 2, 2)
    assert builder.append(columns, array("i", [2, 0, 1, 2]), 3, NOW_MS) == 4
    assert builder.finish() == encode_batch([NewRecord(b"c"), NewRecord(b"a"), NewRecord(b"c")])


@pytest.mark.parametrize("pair", [{"key": None, "value": b"v"}, None], ids=["key", "pair"])
def test_a_header_without_a_key_is_refused_with_its_row(encoder, pair):
    good = {"key": "k", "value": b"v"}
    columns = columns_of([b"a", b"b"], headers=[[good], [good, pair, good]])
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    with pytest.raises(InvalidRecord, match=r"^row 1: the key of its header 1 is null"):
        builder.append(columns, None, 0, NOW_MS)
    assert builder.rows == 1


# --- limits


def test_a_batch_ends_at_the_very_byte(encoder):
    whole = len(encode_batch(at_now(b"abc", b"defg")))
    columns = columns_of([b"abc", b"defg", b"h"])
    for limit, taken in ((whole, 2), (whole - 1, 1)):
        builder = encoder.BatchBuilder(limit_bytes=limit)
        assert builder.size_bytes == 61
        assert builder.append(columns, None, 0, NOW_MS) == taken
        assert builder.size_bytes == len(builder.finish())


def test_a_first_record_fits_whatever_its_size(encoder):
    columns = columns_of([bytes(1000), b"", bytes(1000)])
    builder = encoder.BatchBuilder(limit_bytes=100)
    positions, sizes = [0], []
    while positions[-1] < 3:
        positions.append(builder.append(columns, None, positions[-1], NOW_MS))
        sizes.append(len(builder.finish()))
    assert positions == [0, 1, 2, 3]
    assert sizes[0] == sizes[2] > 1061


def test_rows_of_many_columns_make_one_batch(encoder):
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    for value in (b"a", b"b", b"c"):
        builder.append(columns_of([value]), None, 0, NOW_MS)
    assert builder.append(columns_of([]), None, 0, NOW_MS) == 0
    assert builder.finish() == encode_batch(at_now(b"a", b"b", b"c"))


def test_a_builder_begins_anew(encoder):
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    for _ in range(3):
        builder.append(columns_of([b"a" * 500]), None, 0, NOW_MS)
        assert builder.finish() == encode_batch(at_now(b"a" * 500))
        assert (builder.rows, builder.size_bytes) == (0, 61)
    with pytest.raises(LocalProtocolError, match="without a record"):
        builder.finish()


def test_times_of_one_batch_are_not_those_of_the_next(encoder):
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    for at in (9, 5):
        builder.append(columns_of([b"a"], micros=[at * 1000]), None, 0, NOW_MS)
        assert builder.finish() == encode_batch([NewRecord(b"a", None, at)])


@pytest.mark.parametrize("codec", range(5))
def test_compressing_ahead_changes_no_byte(encoder, codec):
    columns = columns_of([b"a" * 500])
    builder, ahead = (encoder.BatchBuilder(codec=codec, limit_bytes=LIMIT) for _ in range(2))
    for _ in range(2):
        for each in (builder, ahead):
            each.append(columns, None, 0, NOW_MS)
        ahead.compress()
        ahead.compress()
        assert (ahead.rows, ahead.size_bytes) == (builder.rows, builder.size_bytes)
        with pytest.raises(LocalProtocolError, match="compressed already"):
            ahead.append(columns, None, 0, NOW_MS)
        numbers = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 5}
        assert ahead.finish(**numbers) == builder.finish(**numbers)
    with pytest.raises(LocalProtocolError, match="without a record"):
        ahead.compress()
    ahead.append(columns, None, 0, NOW_MS)
    assert ahead.rows == 1


def test_a_record_larger_than_a_batch_can_be_is_refused(encoder):
    with mmap.mmap(-1, 2**31) as data:  # never touched
        column = BinaryInput(array("q", [0, 1, 2**31]), data, is_large=True)
        columns = WriteColumns(2, value=column)
        builder = encoder.BatchBuilder(limit_bytes=INT32_MAX)
        assert builder.append(columns, None, 0, NOW_MS) == 1
        builder.finish()
        with pytest.raises(InvalidRecord, match=r"^row 1: it is larger than a record batch"):
            builder.append(columns, None, 1, NOW_MS)
        del column, columns


# --- whole batches


@pytest.mark.parametrize(
    ("codec", "level"),
    first(5, [(0, None), (1, None), (2, None), (3, None), (4, None), (1, 1), (1, 9), (3, 1),
              (3, 17), (4, -5), (4, 19)]),
)  # fmt: skip
def test_every_codec_and_level(encode, codec, level):
    values = [b"value number %d" % number for number in range(500)]
    batch = encode(columns_of(values), codec=codec, level=level)
    if codec != SNAPPY:  # the kernel has one of its own, see test_snappy_write.py
        assert batch == encode_batch(at_now(*values), codec=codec, level=level)
    decoded = decode(batch, start=0, stop=1000, wanted=Columns.ALL)
    assert [row.value for row in rows_of(decoded)] == values


IDEMPOTENT = {"producer_id": 2**40, "producer_epoch": 3, "base_sequence": 2**31 - 1}


def test_idempotent_and_transactional_fields(encode):
    columns = columns_of([b"a"])
    assert encode(columns, **IDEMPOTENT) == encode_batch(at_now(b"a"), **IDEMPOTENT)
    batch = encode(columns, **IDEMPOTENT, is_transactional=True)
    assert batch == encode_batch(at_now(b"a"), **IDEMPOTENT, attributes=TRANSACTIONAL)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_under_other_fields(encode, codec, kind):
    columns = columns_of([b"a", b"b"])
    plain, marked = encode(columns, codec=codec), {**IDEMPOTENT, "is_transactional": True}
    again = restamped(kind(plain), **marked)
    assert again == encode(columns, codec=codec, **marked)
    none = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    assert restamped(kind(again), **none) == plain
    with pytest.raises(LocalProtocolError, match="60 bytes are no record batch"):
        restamped(kind(plain)[:60], **none)


# --- what callers can get wrong


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"codec": 5}, "codec 5 is unknown"),
        ({"codec": 0, "level": 1}, "none compression has no level 1"),
        ({"codec": 2, "level": 1}, "snappy compression has no level 1"),
        ({"codec": 1, "level": 10}, "gzip compression has no level 10"),
        ({"codec": 4, "level": 23}, "zstd compression has no level 23"),
        ({"limit_bytes": 60}, "limited to 60 bytes"),
        ({"limit_bytes": 2**31}, "limited to 2147483648 bytes"),
    ],
)
def test_settings_that_no_batch_has(encoder, settings, text):
    with pytest.raises(LocalProtocolError, match=text):
        encoder.BatchBuilder(**{"limit_bytes": LIMIT, **settings})


ONE = BinaryInput(array("i", [0, 1]), b"x")


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (WriteColumns(2), {"indices": array("i", [0, 2])}, "position 1 asks for row 2"),
        (WriteColumns(2), {"indices": array("i", [-1])}, "position 0 asks for row -1"),
        (WriteColumns(2), {"indices": b"abc"}, "3 bytes are not a number of int32"),
        (WriteColumns(2), {"start": 3}, "start 3 is not within the 2 rows"),
        (WriteColumns(2), {"start": -1}, "start -1 is not within"),
        (WriteColumns(2), {"now_ms": -1}, "now_ms -1 is not a time"),
        (WriteColumns(-1), {}, "-1 rows from 0 on"),
        (WriteColumns(2**63), {}, "rows from 0 on"),
        (WriteColumns(2, value=ONE), {}, "value: a buffer of 8 bytes, its rows need 12"),
        (WriteColumns(1, key=ONE._replace(first=1)), {}, "key: a buffer of 8 bytes, .* need 12"),
        (WriteColumns(1, key=ONE._replace(first=2**61)), {}, "key: 1 rows from 23058430"),
        (WriteColumns(1, key=ONE._replace(is_large=True)), {}, "key: a buffer of 8 .* need 16"),
        (WriteColumns(1, key=ONE._replace(validity=b"")), {}, "key: a buffer of 0 .* need 1"),
        (
            WriteColumns(1, key=BinaryInput(bytes(40), b"", validity=b"\xff", first=8)),
            {},
            "key: a buffer of 1 bytes, its rows need 2",
        ),
        (WriteColumns(2, timestamps=TimestampInput(bytes(8))), {}, "timestamp: a buffer of 8"),
        (
            WriteColumns(1, headers=HeadersInput(array("i", [0, 1]), 1, ONE, ONE, first=9)),
            {},
            "headers: a buffer of 8 bytes, its rows need 44",
        ),
        (
            WriteColumns(1, headers=HeadersInput(array("i", [0, 2]), 2, ONE, ONE)),
            {},
            "header key: a buffer of 8 bytes, its rows need 12",
        ),
        (
            WriteColumns(1, headers=HeadersInput(array("i", [0, 1]), 2**63, ONE, ONE)),
            {},
            "headers: 9223372036854775808 rows from 0 on",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_read(encoder, columns, options, text):
    builder = encoder.BatchBuilder(limit_bytes=LIMIT)
    arguments = {"indices": None, "start": 0, "now_ms": 0, **options}
    with pytest.raises(LocalProtocolError, match=text):
        builder.append(columns, **arguments)


BAD_OFFSETS = [[-1, 1], [1, 0], [0, 2], [2, 2], [0, 2**31 - 1], [-(2**31), -(2**31)]]


@pytest.mark.parametrize("offsets", BAD_OFFSETS, ids=str)
@pytest.mark.parametrize("is_large", [False, True])
def test_arrow_offsets_outside_the_data_are_refused(encoder, offsets, is_large):
    bad = BinaryInput(array("q" if is_large else "i", offsets), b"x", is_large=is_large)
    pairs = HeadersInput(array("i", [0, 1]), 1, ONE, ONE)
    for word, columns in {
        "key": WriteColumns(1, key=bad),
        "value": WriteColumns(1, value=bad),
        "headers": WriteColumns(1, headers=HeadersInput(bad.offsets, 1, ONE, ONE,
                                                        is_large=is_large)),
        "header key": WriteColumns(1, headers=pairs._replace(keys=bad)),
        "header value": WriteColumns(1, headers=pairs._replace(values=bad)),
    }.items():  # fmt: skip
        builder = encoder.BatchBuilder(limit_bytes=LIMIT)
        with pytest.raises(LocalProtocolError, match=f"row 0: the Arrow offsets of its {word} "):
            builder.append(columns, None, 0, 0)
        assert builder.rows == 0


@pytest.mark.parametrize("micros", [[-5], None])
def test_the_first_of_two_faults_of_a_row_is_told(encoder, micros):
    bad = BinaryInput(array("i", [0, 9]), b"x")
    times = micros and TimestampInput(array("q", micros))
    columns = WriteColumns(1, value=bad, key=bad, timestamps=times)
    with pytest.raises((InvalidRecord, LocalProtocolError)) as caught:
        encoder.BatchBuilder(limit_bytes=LIMIT).append(columns, None, 0, 0)
    assert ("timestamp, -5" if micros else "offsets of its key") in str(caught.value)


def test_buffers_need_not_be_aligned(encode):
    def moved(numbers: array) -> memoryview:
        return memoryview(b"\0" + numbers.tobytes())[1:]

    columns = WriteColumns(
        2,
        value=BinaryInput(moved(array("i", [0, 1, 3])), b"abb"),
        key=BinaryInput(moved(array("q", [0, 2, 3])), b"ccd", is_large=True),
        timestamps=TimestampInput(moved(array("q", [7000, 9000]))),
    )
    expected = encode_batch([NewRecord(b"a", b"cc", 7), NewRecord(b"bb", b"d", 9)])
    assert encode(columns, indices=moved(array("i", [0, 1])).cast("B").cast("i")) == expected


def test_a_builder_in_use_is_not_touched(monkeypatch):
    from pyspark_kafkaproto.records import _kernel_write, writing

    builder = _kernel_write.BatchBuilder(limit_bytes=LIMIT)
    builder.append(columns_of([b"a"]), None, 0, 0)

    def append_meanwhile(records, **fields):
        with pytest.raises(LocalProtocolError, match="two threads"):
            builder.append(columns_of([b"b"]), None, 0, 0)
        return b""

    with monkeypatch.context() as patch:
        patch.setattr(writing, "sealed_batch", append_meanwhile)
        builder.finish()
    builder.append(columns_of([b"c"]), None, 0, 0)
    assert builder.finish() == encode_batch([NewRecord(b"c")])


@pytest.mark.slow
def test_threads_build_side_by_side(encoder):
    values = [b"value number %d" % number for number in range(20_000)]
    columns = columns_of(values)

    def build(codec: int) -> bytes:
        builder = encoder.BatchBuilder(codec=codec, limit_bytes=LIMIT)
        builder.append(columns, None, 0, NOW_MS)
        return builder.finish()

    expected = [build(codec) for codec in (0, 2, 3, 4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(build, (0, 2, 3, 4))) == expected


@pytest.mark.slow
def test_snappy_gives_way_to_other_threads():
    """It takes a tenth of a second, in which the other thread waits for the interpreter alone."""
    from pyspark_kafkaproto.records import _kernel_write

    value = bytes(random.Random(3).choices(range(6), k=1 << 20)) * 32
    builder = _kernel_write.BatchBuilder(codec=SNAPPY, limit_bytes=INT32_MAX)
    builder.append(columns_of([value]), None, 0, NOW_MS)

    def append_nothing_until_refused():
        while True:
            builder.append(columns_of([]), None, 0, NOW_MS)

    with ThreadPoolExecutor(1) as threads:
        compressing = threads.submit(builder.compress)
        with pytest.raises(LocalProtocolError, match="two threads"):  # not "compressed already"
            append_nothing_until_refused()
        compressing.result()
    assert builder.rows == 1


# --- partitions


def test_rows_without_a_key_are_the_callers_to_place(encoder):
    columns = columns_of([b""] * 3, keys=[None, b"", b"k"])
    assert list(encoder.partition_keys(columns, 1, "murmur2")) == [-1, 0, 0]
    assert list(encoder.partition_keys(columns, 1, "consistent_random")) == [-1, -1, 0]
    assert list(encoder.partition_keys(columns_of([b""] * 2), 4, "murmur2")) == [-1, -1]
    assert list(encoder.partition_keys(columns_of([]), 4, "murmur2")) == []


@pytest.mark.parametrize(
    ("partitions", "partitioner", "text"),
    [(0, "murmur2", "not 0"), (2**31, "murmur2", "not 2147483648"), (1, "random", "'random'")],
)
def test_what_places_no_keys(encoder, partitions, partitioner, text):
    with pytest.raises(LocalProtocolError, match=text):
        encoder.partition_keys(WriteColumns(1), partitions, partitioner)


@pytest.mark.parametrize("rows", [-1, 2**63])
def test_rows_that_no_columns_have_are_not_placed(encoder, rows):
    with pytest.raises(LocalProtocolError, match=f"the columns: {rows} rows from 0 on"):
        encoder.partition_keys(WriteColumns(rows), 1, "murmur2")


def test_keys_outside_the_data_are_not_hashed(encoder):
    columns = WriteColumns(2, key=BinaryInput(array("i", [0, 1, 9]), b"x"))
    with pytest.raises(LocalProtocolError, match="row 1: the Arrow offsets of its key"):
        encoder.partition_keys(columns, 3, "murmur2")


def test_rows_by_partition_keep_their_order(encoder):
    indices, starts = encoder.group_rows(array("i", [2, 0, 2, 2, 0, 3]), 5)
    assert list(indices) == [1, 4, 0, 2, 3, 5]
    assert list(starts) == [0, 2, 2, 5, 6, 6]


def test_no_rows_by_partition(encoder):
    indices, starts = encoder.group_rows(array("i"), 2)
    assert (list(indices), list(starts)) == ([], [0, 0, 0])


@pytest.mark.parametrize("partition", [-1, 3, 2**31 - 1, -(2**31)])
def test_rows_in_no_partition_are_refused(encoder, partition):
    with pytest.raises(LocalProtocolError, match=f"row 1 is placed in partition {partition}, "):
        encoder.group_rows(array("i", [0, partition]), 3)
