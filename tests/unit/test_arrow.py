"""Columns as Arrow: Spark's own schema, rows unchanged, buffers not copied."""

from __future__ import annotations

import datetime as dt
import tracemalloc

import pyarrow as pa
import pytest

from pyspark_kafkaproto import arrow
from pyspark_kafkaproto.arrow import (
    COLUMN_NAMES,
    schema_for,
    to_record_batches,
    wanted_columns,
    write_columns,
)
from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError
from pyspark_kafkaproto.records import (
    BatchBuilder,
    Columns,
    NewRecord,
    decode,
    encode_batch,
    reference,
)


def batch_of(records, schema, *, topic="events", partition=3, base_offset=100, **options):
    block = encode_batch(records, base_offset=base_offset)
    wanted = wanted_columns(schema)
    decoded = decode(block, start=0, stop=2**62, wanted=wanted, **options)
    (batch,) = to_record_batches(decoded, topic, partition, schema)
    batch.validate(full=True)
    return batch


def spark_schema(*, headers: bool = True):
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    return StructType(fields + [StructField("headers", ArrayType(header))] * headers)


@pytest.mark.parametrize("headers", [False, True])
def test_the_schema_is_the_one_spark_checks_against(headers):
    from pyspark.sql.pandas.types import to_arrow_schema

    expected = to_arrow_schema(spark_schema(headers=headers), timezone="UTC")
    found = schema_for(COLUMN_NAMES if headers else COLUMN_NAMES[:-1])
    assert found.equals(expected, check_metadata=True)


@pytest.mark.parametrize("name", COLUMN_NAMES)
def test_a_single_column_is_the_one_spark_checks_against(name):
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    expected = to_arrow_schema(StructType([spark_schema()[name]]), timezone="UTC")
    assert schema_for([name]).equals(expected, check_metadata=True)


def test_columns_in_any_order_and_strings():
    schema = schema_for(["offset", "value", "key"], {"value"})
    assert schema.names == ["offset", "value", "key"]
    assert schema.types == [pa.int64(), pa.string(), pa.binary()]
    assert wanted_columns(schema) == Columns.OFFSET | Columns.VALUE | Columns.KEY


def test_topic_and_partition_need_no_decoding():
    assert wanted_columns(schema_for(["topic", "partition"])) == Columns(0)
    assert wanted_columns(schema_for(COLUMN_NAMES)) == Columns.ALL


@pytest.mark.parametrize(
    ("names", "strings"),
    [(["value", "values"], ()), (["key", "key"], ()), (["offset"], {"offset"}), ([""], ())],
)
def test_what_is_no_column_is_named(names, strings):
    with pytest.raises(ConfigError, match="columns"):
        schema_for(names, strings)


def test_a_row_with_everything():
    record = NewRecord(b"v", b"k", 1_700_000_000_123, [(b"a", b"1"), (b"a", None)])
    batch = batch_of([record], schema_for(COLUMN_NAMES))
    assert batch.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "events",
            "partition": 3,
            "offset": 100,
            "timestamp": dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC),
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        }
    ]


def test_null_empty_and_no_headers():
    records = [NewRecord(None, None), NewRecord(b"", b"")]
    batch = batch_of(records, schema_for(["key", "value", "headers"]))
    assert batch.to_pylist() == [
        {"key": None, "value": None, "headers": None},
        {"key": b"", "value": b"", "headers": None},
    ]
    assert batch.column("key").null_count == 1


def test_every_batch_has_the_schema_given():
    schema = schema_for(["value", "topic"])
    assert batch_of([NewRecord(b"v")], schema).schema.equals(schema, check_metadata=True)


def test_no_rows():
    batch = batch_of([], schema_for(COLUMN_NAMES))
    assert batch.num_rows == 0
    assert batch.schema.equals(schema_for(COLUMN_NAMES))


def test_no_columns_keep_the_number_of_rows():
    batch = batch_of([NewRecord(b"v")] * 5, schema_for([]))
    assert (batch.num_rows, batch.num_columns) == (5, 0)


def test_buffers_are_wrapped_not_copied():
    schema = schema_for(["value", "offset"])
    decoded = decode(
        encode_batch([NewRecord(b"v" * 1000)] * 100), start=0, stop=2**62,
        wanted=wanted_columns(schema),
    )  # fmt: skip
    before = pa.total_allocated_bytes()
    (batch,) = to_record_batches(decoded, "t", 0, schema)
    assert pa.total_allocated_bytes() == before
    assert batch.column("value").buffers()[2].address == pa.py_buffer(decoded.value.data).address
    assert batch.column("offset").buffers()[1].address == pa.py_buffer(decoded.offsets).address


@pytest.mark.slow
def test_a_batch_outlives_what_it_was_decoded_from():
    batch = batch_of(
        [NewRecord(b"value %d" % index) for index in range(1000)], schema_for(COLUMN_NAMES)
    )
    batches = [batch_of([NewRecord(b"other")] * 1000, schema_for(COLUMN_NAMES)) for _ in range(10)]
    assert batch.column("value").to_pylist() == [b"value %d" % index for index in range(1000)]
    assert len(batches) == 10


def test_constant_columns_are_built_once_and_cut():
    schema = schema_for(["topic", "partition"])
    large = batch_of([NewRecord(b"")] * 50, schema, topic="one")
    small = batch_of([NewRecord(b"")] * 20, schema, topic="one")
    assert large.column("topic").buffers()[2].address == small.column("topic").buffers()[2].address
    assert small.to_pylist() == [{"topic": "one", "partition": 3}] * 20
    other = batch_of([NewRecord(b"")] * 20, schema, topic="two", partition=4)
    assert other.to_pylist() == [{"topic": "two", "partition": 4}] * 20
    grown = batch_of([NewRecord(b"")] * 120, schema, topic="two", partition=4)
    assert grown.to_pylist() == [{"topic": "two", "partition": 4}] * 120


# Text


@pytest.mark.parametrize("column", ["key", "value"])
def test_text_is_checked(column):
    texts = [b"plain", "grün".encode(), b"\xff\xfe", None]
    records = [NewRecord(text, text) for text in texts]
    told = f"schema.*{column} string.*events-3 at offset 102 is not UTF-8"
    with pytest.raises(ConfigError, match=told):
        batch_of(records, schema_for([column], {column}))
    good = batch_of([*records[:2], records[3]], schema_for([column], {column}))
    assert good.column(column).to_pylist() == ["plain", "grün", None]


def test_two_halves_of_a_character_in_two_rows_are_not_text():
    with pytest.raises(ConfigError, match="offset 100 is not UTF-8"):
        batch_of([NewRecord(b"\xc3"), NewRecord(b"\xa4")], schema_for(["value"], {"value"}))


def test_header_keys_are_read_as_java_does():
    headers = [(b"ok", b"\xff"), (b"a\xffb", b"1"), ("grün".encode(), None)]
    batch = batch_of([NewRecord(b"", headers=headers)], schema_for(["headers"]))
    assert batch.column("headers").to_pylist() == [
        [
            {"key": "ok", "value": b"\xff"},
            {"key": "a\ufffdb", "value": b"1"},
            {"key": "grün", "value": None},
        ]
    ]


@pytest.mark.parametrize(
    ("key", "read"),
    [
        (b"\xed\xa0\x80", "\ufffd"),  # a surrogate is one error in Java, three in Python
        (b"\xed\xacO", "\ufffdO"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xc0\x80", "\ufffd" * 2),
    ],
)
def test_header_keys_as_new_string_of_java_has_them(key, read):
    batch = batch_of([NewRecord(b"", headers=[(key, None)])], schema_for(["headers"]))
    assert batch.column("headers").to_pylist() == [[{"key": read, "value": None}]]


def test_header_keys_are_replaced_piece_by_piece(monkeypatch):
    monkeypatch.setattr(arrow, "_PIECE_KEYS", 3)
    keys = [b"\xff", b"a", b"\xff", b"b\xff", b"", b"a", b"\xfe", b"last"]
    headers = [(key, b"%d" % at) for at, key in enumerate(keys)]
    records = [NewRecord(b"", headers=headers[:2]), NewRecord(b""), NewRecord(b"", headers=headers)]
    found = batch_of(records, schema_for(["headers"])).column("headers").to_pylist()
    read = [{"key": key.decode(errors="replace"), "value": value} for key, value in headers]
    assert found == [read[:2], None, read]


@pytest.mark.parametrize("kinds", [1, 200_000])
def test_very_many_header_keys_that_are_no_text_take_no_python_object_each(kinds):
    """A batch of a few kB, or MB, on the wire; as objects they were some 100 bytes each."""
    count = 200_000
    headers = [(b"\xff%d" % (at % kinds), None) for at in range(count)]
    schema = schema_for(["headers"])
    block = encode_batch([NewRecord(b"", headers=headers)])
    decoded = decode(block, start=0, stop=1, wanted=wanted_columns(schema))
    tracemalloc.start()
    try:
        (batch,) = to_record_batches(decoded, "t", 0, schema)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 66 * count
    assert batch.column("headers").values.field(0)[-1].as_py() == f"\ufffd{(count - 1) % kinds}"


def test_a_column_that_was_not_decoded_is_a_mistake_of_the_caller():
    decoded = decode(encode_batch([NewRecord(b"")]), start=0, stop=1, wanted=Columns.OFFSET)
    with pytest.raises(LocalProtocolError):
        to_record_batches(decoded, "t", 0, schema_for(["value"]))


def test_the_reference_makes_the_same_batch():
    records = [
        NewRecord(b"v" * index, None if index % 3 else b"k", index, [(b"h", None)] * (index % 2))
        for index in range(100)
    ]
    block = encode_batch(records, codec=4)
    schema = schema_for(COLUMN_NAMES)
    pure, chosen = (
        to_record_batches(read(block, start=7, stop=90, wanted=Columns.ALL), "t", 0, schema)
        for read in (reference.decode, decode)
    )
    assert pure == chosen


# --- columns to write

PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])


def written(batch: pa.RecordBatch, *, timestamp_column=None, now_ms=0) -> bytes:
    """All rows as one record batch."""
    builder = BatchBuilder(limit_bytes=1 << 20)
    columns = write_columns(batch, timestamp_column=timestamp_column)
    assert builder.append(columns, None, 0, now_ms) == batch.num_rows
    return builder.finish()


def arrow_batch(**arrays: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(arrays)


@pytest.mark.parametrize(
    ("value", "key", "headers"),
    [
        (pa.binary(), pa.string(), pa.list_(PAIR)),
        (pa.large_binary(), pa.large_string(), pa.large_list(PAIR)),
        (pa.binary_view(), pa.string_view(), pa.list_(PAIR)),
        (pa.dictionary(pa.int32(), pa.binary()), pa.dictionary(pa.int8(), pa.string()),
         pa.list_(pa.struct([("key", pa.binary()), ("value", pa.large_string())]))),
        (pa.binary(1), pa.string(), pa.list_(PAIR)),
    ],
    ids=["plain", "large", "views", "dictionaries", "fixed size"],
)  # fmt: skip
@pytest.mark.parametrize("begin", [0, 1, 2])
def test_every_type_of_a_column_and_its_slices(value, key, headers, begin):
    pairs = [[("a", "1"), ("b", None)], None, [("c", "2")]]
    batch = arrow_batch(
        value=pa.array([b"x", None, b"z"]).cast(value),
        key=pa.array(["k", "long key", None]).cast(key),
        headers=pa.array(pairs, headers),
        topic=pa.array(["t"] * 3),
    )
    records = [
        NewRecord(b"x", b"k", 0, [(b"a", b"1"), (b"b", None)]),
        NewRecord(None, b"long key"),
        NewRecord(b"z", None, 0, [(b"c", b"2")]),
    ]
    assert written(batch.slice(begin)) == encode_batch(records[begin:])


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.binary(2)], ids=str)
def test_dictionaries_of_what_arrow_does_not_decode(kind):
    known = pa.array([b"v0", None, b"v1"]).cast(kind)
    codes = pa.array([0, 2, None, 1, 0], pa.int8())
    value = pa.DictionaryArray.from_arrays(codes, known).slice(1)
    expected = [NewRecord(content) for content in (b"v1", None, None, b"v0")]
    assert written(arrow_batch(value=value)) == encode_batch(expected)


class Views:
    """Strings as pyarrow 17 has them: nobody makes anything else of them."""

    type = pa.string_view()

    def cast(self, kind):
        raise pa.ArrowNotImplementedError(f"Unsupported cast from string_view to {kind}")


def test_views_that_arrow_cannot_read_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"key string_view.*key has to be no view.* from 18 on"):
        arrow.as_binary(Views(), "key")


@pytest.mark.long
def test_a_dictionary_whose_rows_are_more_than_32_bits_can_count():
    """Two gigabytes of memory: of less no offset is too large."""
    known = pa.array([b"", b"x" * (1 << 20)])
    codes = pa.array([1] * 2100 + [0], pa.int32())
    value = pa.DictionaryArray.from_arrays(codes, known)
    columns = write_columns(arrow_batch(value=value))
    builder = BatchBuilder(limit_bytes=1 << 22)
    _, indices = pa.array([2100, 2099], pa.int32()).buffers()
    assert builder.append(columns, indices, 0, 0) == 2
    assert builder.finish() == encode_batch([NewRecord(b""), NewRecord(b"x" * (1 << 20))])


def test_header_pairs_of_a_sliced_struct():
    keys = pa.array(["a", "b", "c", "d"])
    pairs = pa.StructArray.from_arrays([keys, keys.cast(pa.binary())], ["key", "value"])
    pairs = pa.concat_arrays([pairs, pa.array([None], pairs.type)]).slice(1)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pairs)
    batch = arrow_batch(value=pa.array([b"", b""]), headers=lists)
    assert written(batch.slice(1)) == encode_batch(
        [NewRecord(b"", headers=[(b"c", b"c"), (b"d", b"d")])]
    )


@pytest.mark.parametrize(
    ("unit", "number", "expected_ms"),
    [("s", 7, 7000), ("ms", 7, 7), ("us", 7999, 7), ("ns", 7_999_999, 7)],
)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_timestamps_of_every_unit(unit, number, expected_ms, zone):
    times = pa.array([number, None], pa.timestamp(unit, zone))
    batch = arrow_batch(value=pa.array([b"", b""]), at=times)
    expected = encode_batch([NewRecord(b"", timestamp_ms=at) for at in (expected_ms, 9)])
    assert written(batch, timestamp_column="at", now_ms=9) == expected


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_time_before_1970_is_before_1970_in_microseconds_too(zone):
    numbers = [-1, -999, -1000, -1001, 999, None, 1000, 7_999_999, -(2**63)]
    times = pa.array([0, *numbers], pa.timestamp("ns", zone)).slice(1)
    columns = write_columns(arrow_batch(value=pa.nulls(9), at=times), timestamp_column="at")
    micros, validity, first = columns.timestamps
    found = memoryview(micros).cast("B").cast("q")[first:].tolist()
    assert validity is not None
    del numbers[5], found[5]
    assert found == [number // 1000 for number in numbers]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_timestamps_that_microseconds_cannot_tell(unit):
    batch = arrow_batch(value=pa.array([b""]), at=pa.array([2**62], pa.timestamp(unit)))
    with pytest.raises(ConfigError, match=f"at timestamp.{unit}.*64 bits.*{2**62}"):
        write_columns(batch, timestamp_column="at")


def test_a_timestamp_column_is_not_taken_unasked():
    batch = arrow_batch(value=pa.array([b""]), timestamp=pa.array([5000], pa.timestamp("us")))
    assert written(batch, now_ms=9) == encode_batch([NewRecord(b"", timestamp_ms=9)])


def test_columns_of_null_are_null():
    nothing = pa.nulls(1)
    batch = arrow_batch(value=nothing, key=nothing, headers=nothing, at=nothing)
    assert written(batch, timestamp_column="at") == encode_batch([NewRecord(None)])


@pytest.mark.parametrize("size", [pa.list_, pa.large_list])
def test_headers_without_any_content_are_as_others(size):
    """As Arrow has them of Python's lists: without a value there is no type either."""
    lists = pa.array([[{"key": "skipped", "value": None}], [{"key": "k", "value": None}], [], None])
    assert pa.types.is_null(lists.type.value_type.field("value").type)
    batch = arrow_batch(value=pa.nulls(4), headers=lists.cast(size(lists.type.value_type)))
    assert written(batch.slice(1)) == encode_batch(
        [NewRecord(None, headers=[(b"k", None)]), NewRecord(None), NewRecord(None)]
    )
    none = pa.array([[], [], None]).cast(size(pa.null()))
    batch = arrow_batch(value=pa.nulls(3), headers=none)
    assert written(batch.slice(1)) == encode_batch([NewRecord(None)] * 2)


def test_columns_to_write_are_not_copied():
    value = pa.array([b"some", b"bytes"])
    columns = write_columns(arrow_batch(value=value))
    assert [buffer.address for buffer in (columns.value.offsets, columns.value.data)] == [
        buffer.address for buffer in value.buffers()[1:]
    ]
    assert columns.value.validity is None


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        ("value", pa.array([1]), "value int64.*string or binary"),
        ("key", pa.array([[b""]]), "key list.*string or binary"),
        ("value", pa.array([5]).dictionary_encode(), "value dictionary.*string or binary"),
        ("headers", pa.array([b""]), "headers binary.*list of structs"),
        ("headers", pa.array([[b""]]), "headers list.*list of structs"),
        ("headers", pa.array([[{"k": "", "value": b""}]]), "headers list.*list of structs"),
        ("headers", pa.array([[{"key": 1, "value": b""}]]), "headers.key int64.*string or binary"),
        ("at", pa.array([5]), "at int64.*a timestamp"),
    ],
)
def test_columns_that_no_record_has(name, array, text):
    batch = arrow_batch(**{"at": pa.nulls(1), name: array})
    with pytest.raises(ConfigError, match=text):
        write_columns(batch, timestamp_column="at")


def test_a_timestamp_column_that_is_not_there():
    with pytest.raises(ConfigError, match="'timestampColumn' is 'at': the columns are value, key"):
        write_columns(arrow_batch(value=pa.nulls(1), key=pa.nulls(1)), timestamp_column="at")


def test_column_for_damaged_batches_is_what_spark_makes_of_its_type():
    from pyspark.sql.pandas.types import to_arrow_schema

    from pyspark_kafkaproto.spark.columns import default_schema

    schema = default_schema(include_headers=True, damaged_column="aside")
    ours = schema_for(schema.fieldNames(), damaged_column="aside")
    assert to_arrow_schema(schema, timezone="UTC") == ours


@pytest.fixture
def little_room_for_topics(monkeypatch):
    """The name of the topic may stand thirty times in a batch."""
    monkeypatch.setattr(arrow, "TOPIC_BYTES", 30 * len("events"))
    monkeypatch.setattr(arrow._topics, "_kept", None)


@pytest.mark.parametrize("count", [29, 30, 31, 60, 100])
def test_rows_with_too_much_of_a_topics_name_are_several_batches(little_room_for_topics, count):
    schema = schema_for(COLUMN_NAMES)
    block = encode_batch([NewRecord(b"%d" % number) for number in range(count)])
    decoded = decode(block, start=0, stop=2**62, wanted=wanted_columns(schema))
    batches = to_record_batches(decoded, "events", 3, schema)
    assert [batch.num_rows for batch in batches[:-1]] == [30] * ((count - 1) // 30)
    for batch in batches:
        batch.validate(full=True)
    rows = pa.Table.from_batches(batches).to_pydict()
    assert rows["value"] == [b"%d" % number for number in range(count)]
    assert rows["offset"] == list(range(count))
    assert set(rows["topic"]) == {"events"}
    assert set(rows["partition"]) == {3}


def test_what_is_kept_of_a_topics_name_is_bounded(little_room_for_topics):
    assert len(arrow._topics.rows("events", 20)) == 20
    assert len(arrow._topics.rows("events", 21)) == 21
    assert len(arrow._topics._kept[1]) == 30, "and not 40"


def test_a_topic_of_another_thread_is_in_no_row(monkeypatch):
    """Threads read side by side: what is kept may be replaced between any two looks at it."""

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            arrow._topics._kept = ("others", pa.array(["others"] * 5))
            return str.__eq__(self, other)

    monkeypatch.setattr(arrow._topics, "_kept", None)
    arrow._topics.rows(Name("events"), 5)
    assert set(arrow._topics.rows("events", 5).to_pylist()) == {"events"}


def test_without_the_topic_all_rows_are_one_batch(little_room_for_topics):
    schema = schema_for(["value", "partition"])
    block = encode_batch([NewRecord(b"v")] * 100)
    decoded = decode(block, start=0, stop=2**62, wanted=wanted_columns(schema))
    (batch,) = to_record_batches(decoded, "events", 3, schema)
    assert batch.num_rows == 100
