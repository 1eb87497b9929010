"""Sound inputs that fuzzing begins with: every format, codec, API and version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

from pyspark_kafkaproto.messages import request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.compression import compress
from pyspark_kafkaproto.wire import frame
from pyspark_kafkaproto.wire.schema import encode
from tests.fuzz import captured
from tests.fuzz.targets import shapes
from tests.unit.capture import talks
from tests.unit.records.messages import message, message_set, wrapper

_CAPTURES = Path(__file__).resolve().parents[1] / "golden" / "captures"
_PIECE_BYTES = 900
_CHOICE = b"\x09\x00\xff"  # check the checksums, want all columns, from the start to the end
_RECORDS = [NewRecord(b"v", b"k", 5, [(b"h", None), (b"", b"1")]), NewRecord(None), NewRecord(b"")]
_ATTRIBUTES = (0x00, 0x08, 0x10, 0x30, 0x40)


def batch_seeds() -> Iterator[bytes]:
    for codec, attributes in product(range(5), _ATTRIBUTES):
        first = encode_batch(_RECORDS, codec=codec, attributes=attributes, producer_id=1)
        yield _CHOICE + first + encode_batch(_RECORDS, base_offset=3, codec=codec)
    for magic, codec in product((0, 1), (1, 2, 3)):
        inner = message_set(magic, range(3))
        yield _CHOICE + wrapper(magic, 2, inner, codec=codec) + message(magic, 3, None, b"k")
        yield _CHOICE + inner + encode_batch(_RECORDS, base_offset=4)


def codec_seeds() -> Iterator[bytes]:
    records = encode_batch(_RECORDS)[61:]
    for number in range(4):
        for magic, content in (
            (2, records),
            (1, message_set(1, (0, 2))),
            (0, message_set(0, (0,))),
        ):
            kind = number | {2: 0, 1: 8, 0: 12}[magic]
            yield _CHOICE + bytes([kind | 0x10, 3]) + content
            yield _CHOICE + bytes([kind, 3]) + compress(number + 1, content)


def made_seeds() -> Iterator[bytes]:
    draw = Random(5).randbytes
    for kind in (*range(5), *range(0xC0, 0xC8)):
        yield _CHOICE + bytes([0, kind])  # one record, all null
        for size in (20, 60, 200, 600):
            yield _CHOICE + bytes([3, kind]) + draw(size)


def snap_seeds() -> Iterator[bytes]:
    new = Random(6).randbytes
    for size, distance in product((4, 8, 11, 12, 60, 63, 0x41, 0x7F), (1, 7, 100, 2047, 2048)):
        begin = b"".join(b"\x7f" + new(127) for _ in range(1 + distance // 127))
        yield begin + bytes([0x80 | size]) + (distance - 1).to_bytes(2) + b"\x20" + new(32)
    yield b"\x05again" + b"\xff\x00\x04" * 20


def message_seeds() -> Iterator[bytes]:
    for index, (cls, version) in enumerate(shapes()):
        yield index.to_bytes(2) + encode(cls(), version)


def frame_seeds() -> Iterator[bytes]:
    for api in APIS:
        cls = request_class(api.key)
        version = cls.VERSIONS.max
        yield (
            b"\x01"
            + frame.encode_request(cls(), version, 7, "client")
            + b"\x00\x00\x00\x04\x00" * 2
        )


def capture_seeds() -> Iterator[bytes]:
    for path in sorted(_CAPTURES.glob("*.pcap")):
        yield from _pieces_of(path.read_bytes())
    for api in APIS:
        asked, answer = request_class(api.key), response_class(api.key)
        version = asked.VERSIONS.max
        said = frame.encode_request(asked(), version, 7, "client")
        heard = frame.encode_response(answer(), version, 7)
        for choice in (captured.WITH_START, 0):
            yield bytes([choice]) + _said(0, said) + _said(captured.BROKER_SIDE, heard)
        yield b"\x02" + _said(captured.BYTEWISE, said) + _said(captured.BROKER_SIDE, heard[:9])
    batches = encode_batch(_RECORDS, codec=1), wrapper(1, 2, message_set(1, range(3)), codec=1)
    for records in batches:
        asked, heard = talks.fetch_request(1), talks.fetch_response(1, records)
        for special in (captured.AGAIN, captured.EARLY, captured.CUT, captured.BYTEWISE):
            yield b"\x02" + _said(0, asked) + _said(captured.BROKER_SIDE | special, heard)


def _pieces_of(pcap: bytes) -> Iterator[bytes]:
    """Captures of a few packets each, as small as the fuzzer's inputs are."""
    head, pos = pcap[:24], 24
    piece = b""
    while pos < len(pcap):
        stop = pos + 16 + int.from_bytes(pcap[pos + 8 : pos + 12], "little")
        if len(piece) + stop - pos > _PIECE_BYTES:
            yield b"\x01" + head + piece
            piece = b""
        piece += pcap[pos:stop]
        pos = stop
    yield b"\x01" + head + piece


def _said(special: int, data: bytes) -> bytes:
    """What one side says, as segments for `captured`."""
    parts = [data[start : start + 255] for start in range(0, len(data), 255)]
    return b"".join(bytes([special, len(part)]) + part for part in parts)


SEEDS = {
    "batch": batch_seeds,
    "codec": codec_seeds,
    "made": made_seeds,
    "snap": snap_seeds,
    "message": message_seeds,
    "frame": frame_seeds,
    "capture": capture_seeds,
}
