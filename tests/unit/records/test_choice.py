"""Which implementation is used where."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyspark_kafkaproto import records

_USE = (
    "from pyspark_kafkaproto.records import *; "
    "print(IMPLEMENTATION, decode(b'', start=0, stop=1, wanted=Columns.ALL).rows, "
    "skim(b'').batches, BatchBuilder.__module__.rpartition('.')[2])"
)


@pytest.mark.skipif(os.environ.get("KAFKAPROTO_PURE") == "1", reason="the reference was asked for")
def test_the_kernel_is_used_where_it_was_built():
    assert records.IMPLEMENTATION == "kernel"
    assert records.BatchBuilder.__module__ == "pyspark_kafkaproto.records._kernel_write"


@pytest.mark.parametrize(
    ("asked", "before"),
    [
        ("1", "pass"),
        ("", "import sys; sys.modules['pyspark_kafkaproto.records._kernel'] = None"),
        pytest.param(
            "",
            "import sys; sys.modules['pyspark_kafkaproto.records._kernel_write'] = None",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["asked for", "decoder not built", "encoder not built"],
)
def test_the_reference_is_used(asked, before):
    done = subprocess.run(
        [sys.executable, "-c", f"{before}\n{_USE}"],
        env=os.environ | {"KAFKAPROTO_PURE": asked},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.split() == ["pure", "0", "0", "reference_write"]


def test_a_kernel_that_was_not_built_is_told_in_plain_words(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyspark_kafkaproto.records._kernel", None)
    monkeypatch.delattr(records, "_kernel", raising=False)
    monkeypatch.delenv("KAFKAPROTO_PURE", raising=False)
    assert "_kernel" in records._choose()[2], "one that cannot be loaded says why"
    monkeypatch.setattr(records, "__file__", str(tmp_path / "__init__.py"))
    assert records._choose()[2] == "it was not built"


def test_a_part_that_was_not_built_is_named_where_others_were(monkeypatch, tmp_path):
    """As by a compiler that ran out of memory: no circle of imports is to be looked for."""
    monkeypatch.setattr(records, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pyspark_kafkaproto.records._kernel", raising=False)
    monkeypatch.delattr(records, "_kernel", raising=False)
    monkeypatch.delenv("KAFKAPROTO_PURE", raising=False)
    assert records._choose()[2] == "No module named 'pyspark_kafkaproto.records._kernel'"
