"""Checksums and the four codecs: the only place that knows the libraries behind them.

Law: no more than `limit_bytes` ever come out of `decompress`, and nothing is allocated by a size
that the data declares. A codec's library is imported when its first batch is met.

Formats: gzip (RFC 1952, any number of members) · snappy, raw or in xerial's framing (snappy-java) ·
one LZ4 frame · zstd frames (RFC 8878), with or without content size.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency

    Output: TypeAlias = bytes | memoryview

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # versions: own, least
_XERIAL_BLOCK_BYTES: Final = 32 << 10  # what snappy-java cuts the input into
# Three bytes of snappy are at most a copy of 64: a block that declares more than that lies.
_SNAPPY_MAX_RATIO: Final = 22
_ZSTD_SKIPPABLE: Final = 0x184D2A5  # the magic number of frames without content, its last digit off
_ZSTD_RLE: Final = 1  # the type of a block that is one byte, repeated
_ZSTD_LEVEL: Final = 3  # Java's default
# Half of what the library takes for 64 KiB: those of larger batches push the batch itself out of
# the processor's cache, and save one percent of its size at most.
_ZSTD_TABLES: Final = {"hash_log": 15, "chain_log": 14, "min_match": 5}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_FLAGS_POS: Final = 3
_GZIP_FIELDS: Final = 0x1E  # flags: the header has a checksum of its own, an extra field, a name, …
_GZIP_PIECE_BYTES: Final = 1 << 10
_LZ4_PIECE_BYTES: Final = 64 << 10
_LZ4_SMALL_BYTES: Final = 64 << 10  # what Java's producer makes blocks of
_SCRATCH_BYTES: Final = 256 << 10
_SCRATCH_KEPT_BYTES: Final = 16 << 20


class _Library(NamedTuple):
    """Where the functions of a codec's library are, in the order of `NativeFunctions`."""

    module: str
    version: str
    version_unit: int
    functions: tuple[str, ...]


_LIBRARIES: Final = {
    LZ4: _Library(
        "lz4.frame._frame",
        "LZ4F_getVersion",
        100,
        (
            "LZ4F_createDecompressionContext",
            "LZ4F_freeDecompressionContext",
            "LZ4F_decompress",
            "LZ4F_resetDecompressionContext",
        ),
    ),
    ZSTD: _Library(  # the same library as in the module that is used otherwise, which hides it
        "zstandard._cffi",
        "ZSTD_versionNumber",
        10000,
        ("ZSTD_createDCtx", "ZSTD_freeDCtx", "ZSTD_decompressDCtx"),
    ),
}


class DecompressionFailed(Exception):
    """The data is not what its codec says, or more than the limit; the text says which."""


class ContentTooLarge(DecompressionFailed):
    """It is more than the limit."""


def _load_crc32c() -> Any:
    """What package crc32c has in C, without the package around it where that can be had.

    That looks its own version up when it is imported, in all that is on Python's path, Spark's
    archives included: a tenth of a second of each process that Spark starts.
    """
    package = None if "crc32c" in sys.modules else find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    for place in places or ():
        finder = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES))
        spec = finder.find_spec("crc32c._crc32c")
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return import_module("crc32c")


# CRC-32C (Castagnoli) of some bytes; a second argument is the CRC of those before them.
crc32c: Final[Callable[..., int]] = _load_crc32c().crc32c
crc32: Final[Callable[[Buffer], int]] = zlib.crc32  # that of messages older than record batches


def decompress(codec: int, data: memoryview, limit_bytes: int) -> Output:
    """The content of `data`, at most `limit_bytes` of it.

    The answer may be a view of this thread's scratch buffer: it is good until the thread's next
    call.

    Args:
        codec: Kafka's number, 1 to 4.
        data: the whole compressed stream and nothing else.
        limit_bytes: what the content may not exceed.

    Raises:
        DecompressionFailed: unknown codec, damaged or cut data; ContentTooLarge.
    """
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise DecompressionFailed(f"compression codec {codec} is unknown")
    return decompressor(data, limit_bytes)


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` as one stream of `codec`, readable by every Kafka client.

    Args:
        codec: Kafka's number, 0 to 4.
        data: what to compress.
        level: the codec's own level; None for its default. Snappy has none and takes none.
    """
    return _COMPRESSORS[codec](data, level)


class _Scratch(threading.local):
    """One buffer per thread to decompress into: reading a body once needs no new memory."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_SCRATCH_BYTES))

    def at_least(self, size: int) -> memoryview:
        """A buffer of `size` bytes or more; a large one is not kept for the thread's lifetime."""
        if size <= len(self._buffer):
            return self._buffer
        buffer = memoryview(bytearray(size))
        if size <= _SCRATCH_KEPT_BYTES:
            self._buffer = buffer
        return buffer


_scratch = _Scratch()
_contexts = threading.local()


def _zstd_context() -> Any:
    """This thread's decompression context: it holds tables worth keeping."""
    context = getattr(_contexts, "zstd", None)
    if context is None:
        context = _contexts.zstd = _zstandard().ZstdDecompressor()
    return context


class NativeFunctions(NamedTuple):
    """Addresses of the functions of a codec's library."""

    create: int
    free: int
    decompress: int
    reset: int = 0


@cache
def native_functions(codec: int) -> NativeFunctions | None:
    """Those of `codec`; None where its package does not let them be seen, or has others.

    They are for calls without the interpreter, of which the packages have none. What the libraries
    promise of them has not changed since their first versions.
    """
    library = _LIBRARIES.get(codec)
    if library is None:
        return None
    try:
        from ctypes import CDLL, c_void_p, cast  # noqa: PLC0415 - not every Python has it

        found = find_spec(library.module)
        if found is None or found.origin is None:
            return None
        there = CDLL(found.origin)
        if getattr(there, library.version)() // library.version_unit != 1:
            return None
        own, first = (
            [cast(getattr(place, name, 0), c_void_p).value or 0 for name in library.functions]
            for place in (there, CDLL(None))
        )
    except (ImportError, OSError, AttributeError):
        return None
    # A copy of the library that all of the process sees, as one that was preloaded, gets the calls
    # that this one makes of itself: half of each, of two versions, breaks the heap.
    if 0 in own or any(found not in (0, its) for its, found in zip(own, first, strict=True)):
        return None
    return NativeFunctions(*own)


@cache
def _zstandard() -> Any:
    import zstandard  # noqa: PLC0415 - each codec's library is imported when it is first met

    return zstandard


@cache
def _cramjam() -> Any:
    import cramjam  # noqa: PLC0415 - as above

    return cramjam


@cache
def _lz4_frame() -> Any:
    import lz4.frame  # noqa: PLC0415 - as above

    return lz4.frame


@cache
def _isal_zlib() -> Any:
    from isal import isal_zlib  # noqa: PLC0415 - as above

    return isal_zlib


def _over(limit_bytes: int) -> ContentTooLarge:
    return ContentTooLarge(f"it decompresses to more than the limit of {limit_bytes} bytes")


def _damaged(codec: int, error: Exception) -> DecompressionFailed:
    return DecompressionFailed(f"its {NAMES[codec]} data cannot be decompressed: {error}")


def _cut(codec: int) -> DecompressionFailed:
    return DecompressionFailed(f"its {NAMES[codec]} data ends too early")


def _trailing(codec: int) -> DecompressionFailed:
    return DecompressionFailed(f"bytes follow the end of its {NAMES[codec]} data")


# --- gzip


def _gunzip(data: memoryview, limit_bytes: int) -> Output:
    content, pos = _gunzip_member(data, 0, len(data), limit_bytes, limit_bytes)
    if pos == len(data):
        return content
    parts = [content]
    left = limit_bytes - len(content)
    while pos < len(data):
        if data[pos : pos + 2] != _GZIP_MAGIC[: len(data) - pos]:
            raise _trailing(GZIP)
        content, pos = _gunzip_member(data, pos, _GZIP_PIECE_BYTES, left, limit_bytes)
        parts.append(content)
        left -= len(content)
    return b"".join(parts)


def _gunzip_member(
    data: memoryview, pos: int, piece_bytes: int, left: int, limit_bytes: int
) -> tuple[bytes, int]:
    """The content of the member at `pos`, and the position after it.

    Reads in pieces of `piece_bytes`, each twice the one before it: the library copies what it is
    given beyond the member's end, and many small members must not cost the square of their number.
    """
    flags = int.from_bytes(data[pos + _GZIP_FLAGS_POS : pos + _GZIP_FLAGS_POS + 1])
    # isal loses its way in a header of several fields that comes in pieces, and takes the checksum
    # of one for wrong. Producers write none of them.
    library = zlib if flags & _GZIP_FIELDS else _isal_zlib()
    member = library.decompressobj(wbits=31)
    content = b""
    while not member.eof:
        piece = data[pos : pos + piece_bytes]
        if not piece:
            raise _cut(GZIP)
        try:
            content += member.decompress(piece, max_length=left + 1 - len(content))
        except library.error as error:
            raise _damaged(GZIP, error) from error
        if len(content) > left:
            raise _over(limit_bytes)
        pos += len(piece)
        piece_bytes *= 2
    return content, pos - len(member.unused_data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    if level is None:
        compressor = _isal_zlib().compressobj(level=2, wbits=31)
    else:  # gzip's levels 4 to 9 are zlib's alone
        compressor = zlib.compressobj(level=level, wbits=31)
    return bytes(compressor.compress(data) + compressor.flush())


# --- snappy


def _unsnap(data: memoryview, limit_bytes: int) -> Output:
    blocks = _xerial_blocks(data) if bytes(data[:8]) == _XERIAL_MAGIC else iter((data,))
    out = _scratch.at_least(0)
    size = 0
    for block in blocks:
        declared = _snappy_size(block)
        if size + declared > limit_bytes:
            raise _over(limit_bytes)
        out = _grown(out, size, size + declared, limit_bytes)
        try:
            written = _cramjam().snappy.decompress_raw_into(block, out[size : size + declared])
        except _cramjam().DecompressionError as error:
            raise _damaged(SNAPPY, error) from error
        if written != declared:
            raise _cut(SNAPPY)
        size += declared
    return out[:size]


def _snappy_size(block: memoryview) -> int:
    """The size a raw block declares, once it can be true."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _cut(SNAPPY)
    if size > _SNAPPY_MAX_RATIO * len(block):
        raise DecompressionFailed(
            f"its snappy data declares {size} bytes, more than {len(block)} bytes can hold"
        )
    return size


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    """The raw blocks of snappy-java's stream: a header, then blocks led by their size (int32).

    Streams may follow each other: a header then stands where a size would.
    """
    header_size = len(_XERIAL_HEADER)
    pos = 0
    while pos < len(data):
        if bytes(data[pos : pos + 8]) == _XERIAL_MAGIC:
            pos += header_size
            continue
        size = int.from_bytes(data[pos : pos + 4], signed=True)
        pos += 4
        if not 0 < size <= len(data) - pos:
            raise DecompressionFailed(
                f"its snappy data has a block of {size} bytes where {max(0, len(data) - pos)} "
                "are left"
            )
        yield data[pos : pos + size]
        pos += size
    if pos > len(data):
        raise _cut(SNAPPY)


def _snap(data: Buffer, level: int | None) -> bytes:
    if level is not None:
        raise ValueError(f"snappy has no levels, level {level} was given")
    view = memoryview(data).cast("B")
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(_cramjam().snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4), block)
    return b"".join(parts)


# --- lz4


def _unlz4(data: memoryview, limit_bytes: int) -> Output:
    frame = _lz4_frame().LZ4FrameDecompressor()
    # The library allocates what it is allowed to give back: allow it a guess at a time.
    guess = min(limit_bytes + 1, max(_LZ4_PIECE_BYTES, 4 * len(data)))
    parts: list[bytes] = []
    size = 0
    try:
        content: bytes = frame.decompress(data, max_length=guess)
        while True:
            parts.append(content)
            size += len(content)
            if frame.eof or frame.needs_input or size > limit_bytes:
                break
            content = frame.decompress(b"", max_length=min(limit_bytes + 1 - size, guess))
    except RuntimeError as error:
        raise _damaged(LZ4, error) from error
    if size > limit_bytes:
        raise _over(limit_bytes)
    if not frame.eof:
        raise _cut(LZ4)
    if frame.unused_data:
        raise _trailing(LZ4)
    return content if len(parts) == 1 else b"".join(parts)


def _lz4(data: Buffer, level: int | None) -> bytes:
    frame = _lz4_frame()
    # Readers allocate what a block may hold; large blocks take a fifth less time than many small.
    is_small = memoryview(data).nbytes <= _LZ4_SMALL_BYTES
    return bytes(
        frame.compress(
            data,
            block_size=frame.BLOCKSIZE_MAX64KB if is_small else frame.BLOCKSIZE_MAX256KB,
            block_linked=False,  # Kafka's own reader knows independent blocks only
            store_size=False,
            compression_level=0 if level is None else level,
        )
    )


# --- zstd


def _unzstd(data: memoryview, limit_bytes: int) -> Output:
    out = _scratch.at_least(min(limit_bytes + 1, 4 * len(data)))
    reader = _zstd_context().stream_reader(data, read_across_frames=True)
    try:
        size: int = reader.readinto(out)
        while size == len(out):  # a shorter answer means that the data is at its end
            if size > limit_bytes:
                raise _over(limit_bytes)
            out = _grown(out, size, size + 1, limit_bytes)
            size += reader.readinto(out[size:])
    except _zstandard().ZstdError as error:
        raise _damaged(ZSTD, error) from error
    if size > limit_bytes:
        raise _over(limit_bytes)
    _check_zstd_end(data)
    return out[:size]


def _check_zstd_end(data: memoryview) -> None:
    """Refuse a last frame that is cut: the library gives what there is of it without a word."""
    pos = 0
    while pos < len(data):
        pos = _zstd_frame_end(data, pos)
    if pos > len(data):
        raise _cut(ZSTD)


def _zstd_frame_end(data: memoryview, pos: int) -> int:
    """Where the frame at `pos` ends, beyond the data if that cuts it; the library has read it."""
    if int.from_bytes(data[pos : pos + 4], "little") >> 4 == _ZSTD_SKIPPABLE:
        return pos + 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
    flags = int.from_bytes(data[pos + 4 : pos + 5])
    is_single = flags >> 5 & 1  # no window size, and a content size of a byte at least
    pos += 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
    is_last = 0
    while not is_last:
        block = int.from_bytes(data[pos : pos + 3], "little")
        is_last = block & 1 or pos + 3 > len(data)
        pos += 3 + (1 if block >> 1 & 3 == _ZSTD_RLE else block >> 3)
    return pos + (4 if flags & 4 else 0)


def _zstd(data: Buffer, level: int | None) -> bytes:
    return bytes(_zstd_compressor(_ZSTD_LEVEL if level is None else level).compress(data))


def _zstd_compressor(level: int) -> Any:
    """This thread's compressor; of its last level alone, those of high levels are large."""
    kept = getattr(_contexts, "zstd_compressor", None)
    if kept is None or kept[0] != level:
        kept = _contexts.zstd_compressor = (level, _new_zstd_compressor(level))
    return kept[1]


def _new_zstd_compressor(level: int) -> Any:
    """Of the usual level one whose tables stay in a processor's cache, and batches with them."""
    if level != _ZSTD_LEVEL:
        return _zstandard().ZstdCompressor(level=level)
    parameters = _zstandard().ZstdCompressionParameters(compression_level=level, **_ZSTD_TABLES)
    return _zstandard().ZstdCompressor(compression_params=parameters)


def _grown(out: memoryview, used: int, needed: int, limit_bytes: int) -> memoryview:
    """`out` if it holds `needed` bytes, else a larger buffer with the `used` bytes of it."""
    if needed <= len(out):
        return out
    larger = _scratch.at_least(max(needed, min(2 * len(out), limit_bytes + 1)))
    larger[:used] = out[:used]
    return larger


def _none(data: Buffer, level: int | None) -> bytes:
    if level is not None:
        raise ValueError(f"without compression there are no levels, level {level} was given")
    return bytes(data)


_DECOMPRESSORS: Final[dict[int, Callable[[memoryview, int], Output]]] = {
    GZIP: _gunzip,
    SNAPPY: _unsnap,
    LZ4: _unlz4,
    ZSTD: _unzstd,
}
_COMPRESSORS: Final[dict[int, Callable[[Buffer, int | None], bytes]]] = {
    NONE: _none,
    GZIP: _gzip,
    SNAPPY: _snap,
    LZ4: _lz4,
    ZSTD: _zstd,
}
