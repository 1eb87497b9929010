"""Sound inputs that fuzzing begins with: every format, codec, API and version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from pyspark_kafkaproto.messages import request_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.records.compression import compress
from pyspark_kafkaproto.wire import frame
from pyspark_kafkaproto.wire.schema import encode
from tests.fuzz.targets import shapes
from tests.unit.records.messages import message, message_set, wrapper

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


SEEDS = {
    "batch": batch_seeds,
    "codec": codec_seeds,
    "message": message_seeds,
    "frame": frame_seeds,
}
