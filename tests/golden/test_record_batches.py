"""Batches of real clients and brokers give the rows that were written to them."""

import pytest

from pyspark_kafkaproto.records import _kernel, reference
from tests.golden import record_files
from tests.golden.decoded_rows import read_rows

MAGIC_2 = [name for name in record_files.NAMES if record_files.magic_of(name) == 2]

each_implementation = pytest.mark.parametrize("implementation", [_kernel, reference])


def test_there_are_files_of_every_codec():
    codecs = {name.partition("-magic2-")[2].split("-")[0] for name in MAGIC_2}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}


@each_implementation
@pytest.mark.parametrize("name", MAGIC_2)
def test_batches_of_magic_2(name, implementation):
    known = record_files.known_rows(name)
    assert read_rows(implementation, record_files.read_bytes(name)) == known
