"""Both encoders are one: the same batches or the same refusal for any columns, and back again.

Law: any columns give the bytes of a batch or an error that names the row, never anything else.
"""

from __future__ import annotations

from array import array

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafkaproto.arrow import schema_for, to_record_batches, write_columns
from pyspark_kafkaproto.errors import InvalidRecord, LocalProtocolError
from pyspark_kafkaproto.records import (
    BinaryInput,
    Columns,
    HeadersInput,
    TimestampInput,
    WriteColumns,
    _kernel,
    _kernel_write,
    compression,
    layout,
    reference,
    reference_write,
)

NOW_MS = 1_700_000_000_000
SCHEMA = schema_for(["value", "key", "timestamp", "headers"])


def batches_of(implementation, columns, indices, limit_bytes, codec):
    """All batches that come of some rows, those that are refused left out as a writer does it."""
    builder = implementation.BatchBuilder(codec=codec, limit_bytes=limit_bytes)
    position = 0
    count = columns.rows if indices is None else len(indices)
    made = []
    while position < count:
        try:
            position = builder.append(columns, indices, position, NOW_MS)
        except InvalidRecord as error:
            made.append(("refused", str(error), error.row, error.position, builder.rows))
            position = error.position + 1
        except LocalProtocolError as error:
            return [*made, str(error), builder.rows]
        made.append((builder.rows, builder.size_bytes))
        if builder.rows:
            made.append(builder.finish(producer_id=7, producer_epoch=0, base_sequence=position))
    return made


def placed(implementation, columns, partitions):
    found = []
    for partitioner in ("murmur2", "consistent_random"):
        try:
            keys = implementation.partition_keys(columns, partitions, partitioner)
        except LocalProtocolError as error:
            return [str(error)]
        found.append(memoryview(keys).tolist())
        rows = array("i", [max(key, 0) for key in found[-1]])
        found += [list(part) for part in implementation.group_rows(rows, partitions)]
    return found


def comparable(made, codec):
    """`made` without what tells how it was compressed: the native encoder has its own snappy."""
    if codec != compression.SNAPPY:
        return made
    return [uncompressed(one) if isinstance(one, bytes) else one for one in made]


def uncompressed(batch: bytes) -> tuple[bytes, bytes, bytes]:
    """All of a batch in snappy but its size and its checksum, its records as they are."""
    head, rest = batch[: layout.LENGTH_POS], batch[layout.ATTRIBUTES_POS : layout.HEADER_SIZE]
    content = memoryview(batch)[layout.HEADER_SIZE :]
    return head, rest, bytes(compression.decompress(compression.SNAPPY, content, 1 << 20))


def assert_alike(columns, indices=None, limit_bytes=500, codec=0, partitions=5):
    """Both make the same of it; what the native one has made."""
    pure = batches_of(reference_write, columns, indices, limit_bytes, codec)
    native = batches_of(_kernel_write, columns, indices, limit_bytes, codec)
    assert comparable(native, codec) == comparable(pure, codec)
    assert placed(_kernel_write, columns, partitions) == placed(
        reference_write, columns, partitions
    )
    return native


BYTES = st.none() | st.binary(max_size=100)
TEXTS = st.none() | st.text(max_size=30)
GOOD_TIMES = st.integers(0, 2**52)
PAIR = st.tuples(st.text(max_size=20), BYTES)


@st.composite
def arrow_batches(draw, times=GOOD_TIMES, pair=PAIR) -> pa.RecordBatch:
    """Any Arrow batch that a writer may be given: all types that are read as they are, and cuts."""
    rows = draw(st.integers(0, 20))

    def column(content, kinds) -> pa.Array:
        values = draw(st.lists(content, min_size=rows, max_size=rows))
        return pa.array(values, draw(st.sampled_from(kinds)))

    struct = pa.struct([("key", pa.string()), ("value", pa.binary())])
    large = pa.struct([("key", pa.large_binary()), ("value", pa.large_string())])
    lists = [pa.list_(struct), pa.large_list(struct)]
    headers = st.none() | st.lists(pair, max_size=4)
    arrays = {
        "value": column(BYTES, [pa.binary(), pa.large_binary()]),
        "key": column(TEXTS, [pa.string(), pa.large_string(), pa.binary()]),
        "headers": column(headers, lists),
        "at": column(st.none() | times, [pa.timestamp("us"), pa.timestamp("us", "UTC")]),
    }
    if draw(st.booleans()):
        texts = draw(st.lists(st.just([("k", "v")]), min_size=rows, max_size=rows))
        arrays["headers"] = pa.array(texts, pa.list_(large))
    batch = pa.RecordBatch.from_pydict(arrays)
    begin = draw(st.integers(0, rows))
    return batch.slice(begin, draw(st.integers(0, rows - begin)))


def rows_of(batch: pa.RecordBatch) -> list[tuple]:
    """What has to come back: milliseconds, and no headers as null."""
    plain = [batch.column(name).to_pylist() for name in ("value", "key", "headers")]
    times = batch.column("at").cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()

    def as_bytes(content):
        return content.encode() if isinstance(content, str) else content

    return [
        (
            as_bytes(value),
            as_bytes(key),
            NOW_MS if micros is None else micros // 1000,
            [(pair["key"], as_bytes(pair["value"])) for pair in headers or ()] or None,
        )
        for value, key, headers, micros in zip(*plain, times, strict=True)
    ]


@pytest.mark.slow
@given(arrow_batches(), st.integers(0, 4), st.sampled_from([61, 200, 5000]))
@settings(max_examples=150)
def test_what_is_written_is_read_back(batch, codec, limit_bytes):
    columns = write_columns(batch, timestamp_column="at")
    made = assert_alike(columns, None, limit_bytes, codec)
    block = b"".join(part for part in made if isinstance(part, bytes))
    for implementation in (_kernel, reference):
        assert read_back(implementation, block) == expected_rows(batch)


def expected_rows(batch: pa.RecordBatch) -> list[tuple]:
    return [
        (value, key, at, None if pairs is None else [(as_text(k), v) for k, v in pairs])
        for value, key, at, pairs in rows_of(batch)
    ]


def as_text(key: str | bytes) -> str:
    return key.decode() if isinstance(key, bytes) else key


def read_back(implementation, block: bytes) -> list[tuple]:
    """The rows of batches that all begin at offset 0, as a producer sends them."""
    rows, pos = [], 0
    while pos < len(block):
        end = pos + 12 + int.from_bytes(block[pos + 8 : pos + 12])
        decoded = implementation.decode(block[pos:end], start=0, stop=2**31, wanted=Columns.ALL)
        for row in to_record_batches(decoded, "t", 0, SCHEMA)[0].to_pylist():
            at = int(row["timestamp"].timestamp() * 1000 + 0.5)
            pairs = row["headers"] and [(pair["key"], pair["value"]) for pair in row["headers"]]
            rows.append((row["value"], row["key"], at, pairs))
        pos = end
    return rows


BAD_PAIR = PAIR | st.none() | st.tuples(st.none(), BYTES)
INDICES = st.lists(st.integers(-1, 21), max_size=25) | st.lists(st.integers(0, 3), max_size=25)


@pytest.mark.slow
@given(arrow_batches(times=st.integers(-(2**63), 2**63 - 1), pair=BAD_PAIR), INDICES)
@settings(max_examples=150)
def test_rows_that_cannot_be_written_are_refused_alike(batch, indices):
    columns = write_columns(batch, timestamp_column="at")
    assert_alike(columns)
    assert_alike(columns, array("i", indices))


FIRST = st.integers(0, 3) | st.sampled_from([-1, 2**47, 2**63])
BITS = st.none() | st.binary(max_size=4)


@st.composite
def any_binary(draw, rows: int) -> BinaryInput:
    """Offsets that mostly rise, and sometimes are anything, before data of some size."""
    is_large = draw(st.booleans())
    widest = 2**63 if is_large else 2**31
    number = st.integers(0, 40) | st.integers(-widest, widest - 1)
    rising = st.lists(st.integers(0, 40), min_size=rows + 1, max_size=rows + 4).map(sorted)
    offsets = draw(rising | st.lists(number, max_size=8))
    data = draw(st.binary(min_size=30, max_size=60))
    return BinaryInput(
        array("q" if is_large else "i", offsets), data, draw(BITS), is_large, draw(FIRST)
    )


@st.composite
def any_columns(draw) -> WriteColumns:
    """Buffers that need not fit each other, as no sound Arrow array has them."""
    rows = draw(st.integers(0, 4))
    pairs = draw(st.integers(0, 6) | st.sampled_from([-1, 2**62]))
    below = max(0, min(pairs, 6))
    lists = draw(any_binary(rows))
    headers = HeadersInput(
        lists.offsets, pairs, draw(any_binary(below)), draw(any_binary(below)),
        lists.validity, lists.is_large, lists.first, draw(BITS), draw(FIRST),
    )  # fmt: skip
    times = array("q", draw(st.lists(st.integers(-5, 2**63 - 1), min_size=rows, max_size=6)))
    return WriteColumns(
        rows,
        draw(st.none() | any_binary(rows)),
        draw(st.none() | any_binary(rows)),
        draw(st.none() | st.builds(TimestampInput, st.just(times), BITS, FIRST)),
        draw(st.none() | st.just(headers)),
    )


@pytest.mark.slow
@given(any_columns(), st.none() | INDICES.map(lambda numbers: array("i", numbers)))
@settings(max_examples=300)
def test_any_buffers_are_written_or_refused_alike(columns, indices):
    assert_alike(columns, indices)
