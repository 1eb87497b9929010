"""What decompresses to a gigabyte ends in an error and in little memory, the whole process's.

No codec makes a gigabyte of a kilobyte; the formats bound what one byte can become. zstd: 32,768
bytes, a block of 128 KiB that repeats one byte takes four, so a gigabyte takes 32 KiB and a
kilobyte becomes 32 MiB. gzip: 1,032 (258 bytes of two bits), so 1 MiB. lz4: 255, so 4 MiB. snappy:
22 (64 bytes of three), so 48 MiB, and it is given twice the limit here. That a kilobyte only says
that a gigabyte follows is in `test_codecs.py`: a promise takes no memory either.

`test_codecs.py` counts what Python allocates; the libraries behind the codecs allocate too.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.examples import first

LIMIT_MB = 16
# The output, a buffer that grows by doubling, and the compressed bytes in two copies.
ALLOWED_MB = 4 * LIMIT_MB
# What a byte becomes in the bombs: no codec can do much better than these do.
RATIO_MIN = {1: 1000, 2: 21, 3: 240, 4: 32_760}

# Runs in a process of its own: the peak of memory is a process's. A first block of the same codec
# brings in what every batch needs; the stream that becomes a gigabyte is made of repeated pieces.
PROGRAM = """
import gzip, json, resource, sys, zlib
from importlib import import_module

import cramjam, lz4.frame
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, compression
from tests.unit.records.batches import raw_batch
from tests.unit.records.messages import message

module, codec, magic = import_module(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
PIECE, PIECES = bytes(1 << 20), 1 << 10


def gzip_bomb():
    packer = zlib.compressobj(9, wbits=-15)
    piece = packer.compress(PIECE) + packer.flush(zlib.Z_FULL_FLUSH)  # needs nothing before it
    return gzip.compress(b"")[:10] + piece * PIECES + b"\\x03\\x00" + bytes(8)


def snappy_bomb():
    # Raw, it says how much it holds; framed, that shows block by block.
    block = bytes(cramjam.snappy.compress_raw(PIECE))
    framed = len(block).to_bytes(4) + block
    return b"\\x82SNAPPY\\x00" + b"\\x00\\x00\\x00\\x01" * 2 + framed * (2 * LIMIT >> 20)


def lz4_bomb():
    packer = lz4.frame.LZ4FrameCompressor(block_linked=False)
    return packer.begin() + packer.compress(PIECE) * PIECES + packer.flush()


def zstd_bomb():
    # Blocks of one byte repeated 128 KiB times take four bytes each.
    head = b"\\x28\\xb5\\x2f\\xfd" + b"\\x00" + b"\\x38"
    block = (2 | (128 << 10) << 3).to_bytes(3, "little") + b"\\x00"
    last = (3 | (128 << 10) << 3).to_bytes(3, "little") + b"\\x00"
    return head + block * (8 * PIECES - 1) + last


def read(stream):
    if magic == 2:
        block = raw_batch(stream, 1, attributes=codec)
    else:
        block = message(magic, 0, stream, attributes=codec)
    try:
        module.decode(block, start=0, stop=9, wanted=Columns.ALL, batch_limit_bytes=LIMIT)
    except CorruptRecords as error:
        return str(error)


LIMIT = int(sys.argv[4]) << 20
stream = {1: gzip_bomb, 2: snappy_bomb, 3: lz4_bomb, 4: zstd_bomb}[codec]()
read(compression.compress(codec, bytes(1000)))
# What was touched to make the bomb is below this; the peak can only grow.
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = read(stream)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([answer, len(stream), (after - before) / 1024]))
"""


# A process is spent on each; zstd's bomb is the worst.
@pytest.mark.slow
@pytest.mark.parametrize("magic", first(1, [2, 0]))
@pytest.mark.parametrize("codec", first(1, [4, 1, 2, 3]))
def test_bombs_end_in_little_memory(implementation, codec, magic):
    if codec == 4 and magic < 2:
        magic = 2  # messages have no zstd, which is refused before it is looked at
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, implementation.__name__, str(codec), str(magic),
         str(LIMIT_MB)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answer, size, grown_mb = json.loads(done.stdout)
    assert f"more than the limit of {LIMIT_MB << 20}" in answer
    holds = 2 * LIMIT_MB << 20 if codec == 2 else 1 << 30
    assert holds / size > RATIO_MIN[codec]
    assert grown_mb < ALLOWED_MB
