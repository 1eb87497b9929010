"""What a Python process of Spark is prepared with."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import gc
import pyspark_kafkaproto.spark.read
from pyspark_kafkaproto.spark.workers import spare_the_collector
before = len(gc.get_objects())
spare_the_collector()
frozen = gc.get_freeze_count()
spare_the_collector()
print(before, len(gc.get_objects()), frozen, gc.get_freeze_count())
"""


@pytest.mark.slow
def test_what_was_imported_is_passed_over_by_garbage_collections() -> None:
    done = subprocess.run(  # a process of its own: freezing cannot be taken back
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    before, left, frozen, again = map(int, done.stdout.split())
    assert left < before / 100
    assert frozen == again > 10_000
