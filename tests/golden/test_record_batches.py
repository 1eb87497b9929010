"""Batches of real clients and brokers give the rows that were written to them."""

from struct import iter_unpack

import pytest

from pyspark_kafkaproto.records import Columns, _kernel, reference
from pyspark_kafkaproto.records.transactions import AbortedTransactions
from tests.golden import record_files
from tests.golden.record_files import Row

END = 1 << 62
MAGIC_2 = [name for name in record_files.NAMES if record_files.magic_of(name) == 2]

each_implementation = pytest.mark.parametrize("implementation", [_kernel, reference])


def read_rows(implementation, block):
    decoded = implementation.decode(
        block,
        pos=0,
        start=0,
        stop=END,
        wanted=Columns.ALL,
        aborted=AbortedTransactions(()),
        check_crcs=True,
        batch_limit_bytes=1 << 20,
        chunk_bytes=1 << 20,
    )
    columns = (
        integers(decoded.offsets, "q"),
        [micros // 1000 for micros in integers(decoded.timestamps, "q")],
        integers(decoded.timestamp_types, "i"),
        texts(decoded.key, decoded.rows),
        texts(decoded.value, decoded.rows),
        headers(decoded.headers, decoded.rows),
    )
    return [Row(*cells) for cells in zip(*columns, strict=True)]


def integers(buffer, code):
    return [number for (number,) in iter_unpack(f"={code}", bytes(buffer))]


def texts(column, rows):
    offsets, data = integers(column.offsets, "i"), bytes(column.data)
    return [
        data[offsets[row] : offsets[row + 1]] if is_valid(column, row) else None
        for row in range(rows)
    ]


def headers(column, rows):
    offsets = integers(column.offsets, "i")
    pairs = list(
        zip(texts(column.keys, column.pairs), texts(column.values, column.pairs), strict=True)
    )
    return [tuple(pairs[offsets[row] : offsets[row + 1]]) for row in range(rows)]


def is_valid(column, row):
    return column.validity is None or bytes(column.validity)[row // 8] >> row % 8 & 1


def test_there_are_files_of_every_codec():
    codecs = {name.partition("-magic2-")[2].split("-")[0] for name in MAGIC_2}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}


@each_implementation
@pytest.mark.parametrize("name", MAGIC_2)
def test_batches_of_magic_2(name, implementation):
    known = record_files.known_rows(name)
    assert read_rows(implementation, record_files.read_bytes(name)) == known
