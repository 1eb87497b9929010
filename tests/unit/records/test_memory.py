"""What is decoded is freed, whether reading ended well or not; so is what is encoded into."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from array import array

import pytest

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import BinaryInput, NewRecord, WriteColumns, encode_batch
from pyspark_kafkaproto.records.compression import SNAPPY
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


@pytest.mark.slow
def test_what_snappy_is_written_into_is_freed():
    from pyspark_kafkaproto.records import _kernel_write

    columns = WriteColumns(1, value=BinaryInput(array("i", [0, 1_000_000]), os.urandom(1_000_000)))
    builder = _kernel_write.BatchBuilder(codec=SNAPPY, limit_bytes=2_000_000)
    before = peak_bytes()
    for _ in range(ROUNDS):
        builder.append(columns, None, 0, 0)
        builder.finish()
    assert peak_bytes() - before < 50 << 20


# What is compressed is there; what it is compressed into is not to be had.
WITHOUT_MEMORY = """
import resource
from array import array
from pyspark_kafkaproto.records import BinaryInput, WriteColumns, _kernel_write
size = 64 << 20
columns = WriteColumns(1, value=BinaryInput(array("i", [0, size]), bytes(size)))
builder = _kernel_write.BatchBuilder(codec=2, limit_bytes=2 * size)
builder.append(columns, None, 0, 0)
pages = int(open("/proc/self/statm").read().split()[0])
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size // 2, limits[1]))
try:
    builder.compress()
except MemoryError:
    print("none")
resource.setrlimit(resource.RLIMIT_AS, limits)
print(len(builder.finish()) > 61)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has no such limit")
@pytest.mark.skipif("KAFKAPROTO_FUZZ_BUILD" in os.environ, reason="sanitizers need more by far")
def test_snappy_without_memory_can_be_tried_again():
    command = [sys.executable, "-c", WITHOUT_MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.returncode) == (["none", "True"], 0), done.stderr


# The memory that columns grow in is this function's.
FAILING_REALLOC = """
#include <dlfcn.h>
#include <stddef.h>

int fail_at = 0;  // which of the next calls; 0 for none

void *realloc(void *area, size_t size) {
    static void *(*own)(void *, size_t);
    if (!own)
        own = (void *(*)(void *, size_t)) dlsym(RTLD_NEXT, "realloc");
    return fail_at && !--fail_at ? NULL : own(area, size);
}
"""
DECODING = """
import ctypes
from pyspark_kafkaproto.records import Columns, NewRecord, _kernel, encode_batch
fail_at = ctypes.c_int.in_dll(ctypes.CDLL(None), "fail_at")
records = [NewRecord(b"v", b"k"), NewRecord(None, b"k" * 5000), NewRecord(b"v" * 50, None)] * 9
block = encode_batch(records)

def read():
    found = _kernel.decode(block, start=0, stop=99, wanted=Columns.ALL)
    columns = [found.offsets, found.headers.validity]
    columns += [part for one in (found.key, found.value) for part in one]
    return [bytes(memoryview(part)) for part in columns]

whole = read()
failed = number = 0
while True:
    number += 1
    fail_at.value = number
    try:
        found = read()
    except MemoryError:
        failed += 1
    else:
        assert found == whole, number
    if fail_at.value:  # there are not so many
        break
print(failed > 2)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere functions are replaced otherwise")
@pytest.mark.skipif("KAFKAPROTO_FUZZ_BUILD" in os.environ, reason="sanitizers have their own")
def test_whichever_memory_is_not_to_be_had_no_row_is_another(tmp_path):
    source, library = tmp_path / "failing.c", tmp_path / "failing.so"
    source.write_text(FAILING_REALLOC)
    build = [os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source]
    subprocess.run([*build, "-ldl"], timeout=60, check=True)
    done = subprocess.run(
        [sys.executable, "-c", DECODING],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout.split(), done.returncode) == (["True"], 0), done.stderr


def test_chunks_can_be_held_while_others_are_decoded(decode):
    held = [decode(BLOCK[: len(BLOCK) // 10 * (index + 1)]) for index in range(10)]
    sizes = [memoryview(decoded.value.data).nbytes for decoded in held]
    assert sizes == sorted(sizes)
    assert all(bytes(memoryview(decoded.value.data)[:50_000]) == VALUE for decoded in held)
    del held[::2]
    again = [decode(BLOCK) for _ in range(10)]
    assert all(bytes(decoded.value.data)[:50_000] == VALUE for decoded in held + again)
