"""The two ways that the kernel has to a batch's CRC, for batches of every length."""

from __future__ import annotations

import random
import sys
import threading
import time
from functools import partial

import crc32c
import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, layout
from pyspark_kafkaproto.records import batch as batch_module
from tests.unit.records.batches import raw_batch

block_module = pytest.importorskip("pyspark_kafkaproto.records._block")
kernel = pytest.importorskip("pyspark_kafkaproto.records._kernel")

MIN_SUMMED = layout.HEADER_SIZE - layout.ATTRIBUTES_POS  # bytes of a header that the CRC is of


@pytest.fixture(params=[True, False], ids=["folded", "by the package"])
def _way(request, monkeypatch):
    if request.param and not block_module.folds:
        pytest.skip("this processor does not fold, or the compiler knows of no such thing")
    monkeypatch.setattr(block_module, "folds", request.param)


def batch_of(content: bytes) -> bytes:
    """A batch of no records, around bytes that only its CRC looks at."""
    header = bytearray(raw_batch(b"", 0))
    header[8:12] = (layout.HEADER_SIZE + len(content) - layout.LOG_OVERHEAD).to_bytes(4)
    header[17:21] = crc32c.crc32c(bytes(header[layout.ATTRIBUTES_POS :]) + content).to_bytes(4)
    return bytes(header) + content


def refusal(block: bytes, pos: int = 0) -> str:
    with pytest.raises(CorruptRecords) as caught:
        kernel.decode(block, pos=pos, start=0, stop=2**62, wanted=Columns.VALUE)
    return str(caught.value)


def is_sound(block: bytes, pos: int = 0) -> bool:
    """Whether its CRC is right: what stands behind a batch's records is refused after that."""
    return "CRC-32C" not in refusal(block, pos)


@pytest.fixture
def _trusted(monkeypatch):
    """What the kernel finds wrong is not looked at again, which would say that it is right."""
    monkeypatch.setattr(batch_module, "check_crc", lambda *_: pytest.fail("no such CRC"))


@pytest.mark.usefixtures("_way", "_trusted")
def test_batches_of_all_lengths_wherever_they_stand():
    drawn = random.Random(1)
    for size in [*range(1, 1300), *(drawn.randrange(1 << 17) for _ in range(50))]:
        batch = batch_of(drawn.randbytes(size))
        pos = drawn.randrange(70)
        assert is_sound(bytes(pos) + batch, pos), (size, pos)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("size", [200, 256 - MIN_SUMMED, 448 - MIN_SUMMED, 1000, 1 << 16])
def test_no_bit_may_be_wrong(size):
    drawn = random.Random(size)
    batch = bytearray(batch_of(drawn.randbytes(size)))
    for pos in drawn.sample(range(layout.HEADER_SIZE, len(batch)), min(size, 1 << 10)):
        bit = 1 << drawn.randrange(8)
        batch[pos] ^= bit
        assert not is_sound(bytes(batch)), (pos, bit)
        batch[pos] ^= bit
    assert is_sound(bytes(batch))


@pytest.mark.usefixtures("_way")
def test_both_ways_say_what_crc_it_should_be():
    batch = bytearray(batch_of(b"x" * 5000))
    expected = int.from_bytes(batch[17:21])
    batch[17:21] = bytes(4)
    assert f"{expected:#010x}" in refusal(bytes(batch))


@pytest.mark.usefixtures("_way", "_trusted")
def test_other_threads_go_on_beside_the_crc_of_a_large_batch():
    batch = batch_of(bytes(64 << 20))[:-1] + b"x"  # so that its CRC is all that is worked out
    until = time.monotonic() + 30
    while not goes_on_beside(partial(pytest.raises, pytest.fail.Exception, is_sound, batch)):
        assert time.monotonic() < until, "no thread goes on"


def goes_on_beside(work) -> bool:
    """Whether a thread that may go on does so before `work` has ended, as it is given way to."""
    ended, may_go_on, seen = False, threading.Lock(), []
    may_go_on.acquire()
    other = threading.Thread(target=lambda: may_go_on.acquire() and seen.append(ended))
    other.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(600)  # no thread is made to give way
    try:
        may_go_on.release()
        work()
        ended = True
    finally:
        sys.setswitchinterval(interval)
    other.join()
    return not seen[0]
