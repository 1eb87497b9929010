"""Batches of real clients and brokers give the rows that were written to them."""

from itertools import product

import pytest

from pyspark_kafkaproto.records import NewRecord, _kernel, compression, encode_batch, reference
from tests.examples import first
from tests.golden import record_files
from tests.golden.decoded_rows import Row, read_rows

each_implementation = pytest.mark.parametrize("implementation", [_kernel, reference])


def test_there_are_files_of_every_magic_and_codec():
    kinds = {tuple(name.partition("-magic")[2].split("-")[:2]) for name in record_files.NAMES}
    old = {"none", "gzip", "snappy", "lz4"}
    expected = {*product("01", old), *product("2", old | {"zstd"})}
    assert kinds == expected


@each_implementation
@pytest.mark.parametrize("name", first(15, record_files.NAMES))
def test_batches_give_the_rows_that_were_written(name, implementation):
    known = record_files.known_rows(name)
    assert read_rows(implementation, record_files.read_bytes(name)) == known


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in record_files.NAMES
        if any(f"magic2-{codec}" in name for codec in ("snappy", "lz4", "zstd"))
    ],
)
def test_what_clients_write_in_these_codecs_takes_no_step_in_python(monkeypatch, name):
    known = record_files.known_rows(name)
    monkeypatch.setattr(compression, "decompress", None)
    assert read_rows(_kernel, record_files.read_bytes(name)) == known


@each_implementation
def test_all_formats_mixed_in_one_answer(implementation):
    # As the log of a broker that was upgraded twice: offsets 0 to 5, 6 to 11, 12 and more.
    old = record_files.read_bytes("kafka-fetch-v1-magic0-gzip")
    newer = record_files.read_bytes("kafka-fetch-v3-magic1-lz4-from-6")
    newest = encode_batch([NewRecord(b"last", None, 7)], base_offset=12, codec=4)
    whole = old[: implementation.skim(old, 0).pos]
    assert read_rows(implementation, whole + newer + newest) == [
        *record_files.known_rows("kafka-fetch-v1-magic0-gzip"),
        *record_files.known_rows("kafka-fetch-v3-magic1-lz4-from-6"),
        Row(12, 7, 0, None, b"last", ()),
    ]
