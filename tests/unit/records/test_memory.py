"""What is decoded is freed, whether reading ended well or not."""

from __future__ import annotations

import os
import resource
import sys

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.examples import first

VALUE = os.urandom(50_000)
HEADERS = [(b"h" * 1000, b"v" * 1000), (b"n", None)]
BLOCK = b"".join(
    encode_batch([NewRecord(VALUE, VALUE, headers=HEADERS), NewRecord(None)], base_offset=offset)
    for offset in range(0, 20, 2)
)
ROUNDS = 300  # of 1 MB each, so that a leak stands far above what other tests have used


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.slow
@pytest.mark.parametrize("state", first(1, ["sound", "corrupt"]))
def test_nothing_leaks(implementation, decode, state):
    block = bytearray(BLOCK)
    if state == "corrupt":
        block[-1] ^= 1
    before = peak_bytes()
    for _ in range(ROUNDS if implementation.__name__.endswith("kernel") else 100):
        try:
            decode(block)
        except CorruptRecords:
            assert state == "corrupt"
    assert peak_bytes() - before < 50 << 20


def test_chunks_can_be_held_while_others_are_decoded(decode):
    held = [decode(BLOCK[: len(BLOCK) // 10 * (index + 1)]) for index in range(10)]
    sizes = [memoryview(decoded.value.data).nbytes for decoded in held]
    assert sizes == sorted(sizes)
    assert all(bytes(memoryview(decoded.value.data)[:50_000]) == VALUE for decoded in held)
    del held[::2]
    again = [decode(BLOCK) for _ in range(10)]
    assert all(bytes(decoded.value.data)[:50_000] == VALUE for decoded in held + again)
