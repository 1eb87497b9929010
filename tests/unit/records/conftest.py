"""Every test of the data plane runs on both implementations; the test's id says on which."""

from __future__ import annotations

import functools
from importlib import import_module

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns
from tests.unit.records.batches import rows_of

_MODULES = {
    "kernel": "pyspark_kafkaproto.records._kernel",
    "pure": "pyspark_kafkaproto.records.reference",
}


@pytest.fixture(params=_MODULES)
def implementation(request):
    """The module with `decode` and `skim`. A kernel that was not built is a failure."""
    return import_module(_MODULES[request.param])


@pytest.fixture(params=["_kernel_write", "reference_write"], ids=["kernel", "pure"])
def encoder(request):
    """The module with `BatchBuilder`, `partition_keys` and `group_rows`."""
    return import_module(f"pyspark_kafkaproto.records.{request.param}")


@pytest.fixture
def decode(implementation):
    """`decode` with all offsets and all columns wanted unless a test says otherwise."""
    return functools.partial(implementation.decode, start=0, stop=2**62, wanted=Columns.ALL)


@pytest.fixture
def rows(decode):
    """The rows of a block as Python values."""
    return lambda block, **options: rows_of(decode(block, **options))


@pytest.fixture
def refused(decode):
    """The error with which a block is refused."""

    def refuse(block, **options) -> CorruptRecords:
        with pytest.raises(CorruptRecords) as caught:
            decode(block, **options)
        return caught.value

    return refuse
