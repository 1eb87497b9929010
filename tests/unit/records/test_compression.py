"""The codecs by themselves: bounds at the very byte, scratch memory, levels, late imports."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import crc32c
import pytest
import zstandard

from pyspark_kafkaproto.records import compression
from pyspark_kafkaproto.records.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    ContentTooLarge,
    DecompressionFailed,
    compress,
    decompress,
)
from tests.examples import first

CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
TEXT = b"".join(b"line %d of a text that can be compressed\n" % number for number in range(5000))


@CODECS
@pytest.mark.parametrize("size", [1, 100, 64 << 10, len(TEXT)])
def test_there_and_back(codec, size):
    stream = compress(codec, TEXT[:size])
    assert decompress(codec, memoryview(stream), 1 << 20) == TEXT[:size]


def test_the_checksum_is_its_packages_and_comes_without_it_where_it_can(monkeypatch):
    monkeypatch.delitem(sys.modules, "crc32c")
    alone = compression._load_crc32c()
    assert "crc32c" not in sys.modules
    data = random.Random(7).randbytes(10_000)
    for size in (0, 1, 7, 8, 9, 10_000):
        assert alone.crc32c(data[:size]) == crc32c.crc32c(data[:size])
        assert alone.crc32c(data[size:], alone.crc32c(data[:size])) == crc32c.crc32c(data)


@pytest.mark.parametrize(
    "files",
    [
        {"crc32c.py": "crc32c = len"},
        {"crc32c/__init__.py": "crc32c = len"},
        {"crc32c/__init__.py": "crc32c = len", "crc32c/_crc32c.py": "of_another_version = 1"},
        {"crc32c/__init__.py": "crc32c = len", "crc32c/_crc32c/sources.c": ""},
    ],
)
@pytest.mark.parametrize("is_zipped", [False, True])
def test_the_checksum_of_a_package_of_another_form(monkeypatch, tmp_path, files, is_zipped):
    place = tmp_path / "packages"
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    if is_zipped:
        place = shutil.make_archive(str(place), "zip", place)
    for name in [name for name in sys.modules if name.split(".")[0] == "crc32c"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(place)
    assert compression._load_crc32c().crc32c is len
    monkeypatch.delitem(sys.modules, "crc32c")  # before that of other tests comes back


def test_the_checksum_of_a_package_that_is_loaded(monkeypatch):
    stub = SimpleNamespace(crc32c=len)
    monkeypatch.setitem(sys.modules, "crc32c", stub)
    assert compression._load_crc32c() is stub


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_the_libraries_that_are_installed_show_their_functions(codec):
    """Those that setup.cfg allows do, on Linux and macOS; with others all is slower, no more."""
    assert 0 not in compression.native_functions(codec)[:3]


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, 5])
def test_others_show_none(codec):
    assert compression.native_functions(codec) is None


@pytest.mark.parametrize(
    "change",
    [
        {"module": "lz4.frame._nosuch"},
        {"module": "json"},  # not a library
        {"module": "nosuch.package"},
        {"module": "lz4._version"},  # a library without these functions
        {"version": "LZ4F_no_such"},
        {"version_unit": 10},  # another main version
        {"functions": ("LZ4F_no_such",)},
    ],
    ids=str,
)
def test_a_library_of_another_form_shows_none(monkeypatch, change):
    library = compression._LIBRARIES[LZ4]._replace(**change)
    monkeypatch.setattr(compression, "_LIBRARIES", {LZ4: library})
    assert compression.native_functions.__wrapped__(LZ4) is None


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_a_library_whose_calls_of_itself_go_to_another_copy_shows_none(codec, tmp_path):
    """As where one of the system is preloaded: of two versions, that broke the heap."""
    module = find_spec(compression._LIBRARIES[codec].module).origin
    copy = shutil.copy(module, tmp_path / "copy.so")
    program = (
        "import ctypes, sys\n"
        "from pyspark_kafkaproto.records import compression\n"
        "ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\n"
        "print(compression.native_functions(int(sys.argv[2])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, copy, str(codec)],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert done.stdout == "None\n"


@CODECS
def test_nothing_compressed_is_nothing(codec):
    assert len(decompress(codec, memoryview(compress(codec, b"")), 100)) == 0


ZSTD_CONTENTS = (b"", b"a", TEXT[:300], TEXT, bytes(300_000), random.Random(1).randbytes(70_000))


@pytest.mark.parametrize("has_checksum", [False, True])
@pytest.mark.parametrize("has_size", [False, True])
@pytest.mark.parametrize("content", first(4, ZSTD_CONTENTS), ids=len)
def test_the_end_of_a_zstd_frame(content, has_size, has_checksum):
    frame = zstandard.ZstdCompressor(
        write_content_size=has_size, write_checksum=has_checksum
    ).compress(content)
    skippable = b"\x5f\x2a\x4d\x18\x02\x00\x00\x00ab"
    for stream in (frame, skippable + frame, frame + skippable):
        assert decompress(ZSTD, memoryview(stream), 1 << 20) == content
    for cut in (*range(1, min(len(frame), 40)), len(frame) // 2):
        for stream in (frame[:-cut], skippable + frame[:-cut], frame + skippable + frame[:-cut]):
            with pytest.raises(DecompressionFailed, match="zstd data ends too early"):
                decompress(ZSTD, memoryview(stream), 1 << 20)


@CODECS
def test_the_limit_is_exact(codec):
    stream = memoryview(compress(codec, TEXT))
    assert len(decompress(codec, stream, len(TEXT))) == len(TEXT)
    with pytest.raises(ContentTooLarge, match=f"more than the limit of {len(TEXT) - 1}"):
        decompress(codec, stream, len(TEXT) - 1)


@CODECS
def test_more_than_the_first_guess(codec, monkeypatch):
    """Much larger than its stream; no part of it is as another, nor as memory that is new."""
    monkeypatch.setattr(compression, "_scratch", compression._Scratch())
    content = b"".join(number.to_bytes(2) * 2500 for number in range(1000))
    assert decompress(codec, memoryview(compress(codec, content)), 1 << 23) == content


@CODECS
def test_every_cut_fails_or_gives_less(codec):
    stream = compress(codec, TEXT[:2000])
    for end in range(len(stream)):
        try:
            content = bytes(decompress(codec, memoryview(stream)[:end], 1 << 20))
        except DecompressionFailed:
            continue
        assert TEXT[:2000].startswith(content)
        assert len(content) < 2000


@CODECS
def test_threads_have_memory_of_their_own(codec):
    texts = [bytes([number]) * 100_000 for number in range(4)]
    streams = [memoryview(compress(codec, text)) for text in texts]

    def is_right(number: int) -> bool:
        return bytes(decompress(codec, streams[number], 1 << 20)) == texts[number]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_right, [0, 1, 2, 3] * 20))


@pytest.mark.parametrize(("codec", "levels"), [(GZIP, (1, 9)), (LZ4, (0, 12)), (ZSTD, (-7, 3))])
def test_a_higher_level_makes_it_smaller(codec, levels):
    low, high = (compress(codec, TEXT, level) for level in levels)
    assert len(high) < len(low)
    assert decompress(codec, memoryview(high), 1 << 20) == TEXT


def source_text() -> bytes:
    """Half a megabyte of what people wrote."""
    folder = Path(compression.__file__).parents[1]
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))[: 512 << 10]


@pytest.mark.parametrize("size", [100, 16 << 10, 256 << 10, 512 << 10])
def test_small_tables_of_zstd_are_nearly_as_good_as_the_librarys(size):
    text = source_text()[:size]
    plain = zstandard.ZstdCompressor(level=3).compress(text)
    assert len(compress(ZSTD, text)) <= 1.02 * len(plain)
    assert compress(ZSTD, text, 3) == compress(ZSTD, text)


@pytest.mark.parametrize("codec", [NONE, SNAPPY])
def test_codecs_without_levels_take_none(codec):
    with pytest.raises(ValueError, match="no levels"):
        compress(codec, TEXT, 3)


@pytest.mark.parametrize("codec", [-1, 0, 5])
def test_a_codec_that_is_none(codec):
    with pytest.raises(DecompressionFailed, match="unknown"):
        decompress(codec, memoryview(b"x"), 10)


@pytest.mark.slow
def test_a_large_buffer_is_not_kept():
    zeros = bytes((compression._SCRATCH_KEPT_BYTES) + 1)
    decompress(SNAPPY, memoryview(compress(SNAPPY, zeros)), 1 << 28)
    assert len(compression._scratch.at_least(0)) <= compression._SCRATCH_KEPT_BYTES


@pytest.mark.parametrize(("size", "shift"), [(1, 16), (64 << 10, 16), ((64 << 10) + 1, 18)])
def test_lz4_blocks_are_large_where_there_is_much(size, shift):
    descriptor = compress(LZ4, bytes(size))[5]  # of blocks: 4 is 64 KiB, each more four times that
    assert descriptor >> 4 == 4 + (shift - 16) // 2


@pytest.mark.slow
def test_a_library_is_imported_when_its_codec_is_met():
    program = (
        "import sys\n"
        "from pyspark_kafkaproto.records import encode_batch, NewRecord\n"
        "encode_batch([NewRecord(b'')], codec=3)\n"
        "print([name for name in ('zstandard', 'cramjam', 'lz4', 'isal') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"['lz4']"
