"""Records to one record batch, in plain Python: what the reference decoder reads back.

Every field can be set, those too that only brokers write, so that tests can make any batch there
is. Format: `layout.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from pyspark_kafkaproto.records import compression, layout

Content: TypeAlias = bytes | memoryview


class NewRecord(NamedTuple):
    """One record to encode; None is null.

    timestamp_ms: milliseconds since 1970 UTC. offset_delta: None for the record's index.
    """

    value: Content | None
    key: Content | None = None
    timestamp_ms: int = 0
    headers: Sequence[tuple[Content, Content | None]] = ()
    offset_delta: int | None = None


def encode_batch(  # noqa: PLR0913 - a keyword per field of the header
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: int = compression.NONE,
    level: int | None = None,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp_ms: int | None = None,
    max_timestamp_ms: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = layout.NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One record batch of magic 2, its CRC included.

    Args:
        records: the records, in the order of their offsets.
        base_offset: 0 in what a producer sends; the broker sets it.
        codec: Kafka's number, 0 to 4; see `compression`.
        level: the codec's level, None for its default.
        attributes: the bits of `layout` beside the codec's.
        last_offset_delta: None for that of the last record.
        base_timestamp_ms: None for that of the first record.
        max_timestamp_ms: None for the largest.
        leader_epoch: the broker sets it.
        producer_id: -1 without idempotence, as the two below.
        producer_epoch: of the producer.
        base_sequence: of the first record.
    """
    timestamps = [record.timestamp_ms for record in records]
    if base_timestamp_ms is None:
        base_timestamp_ms = timestamps[0] if timestamps else -1
    deltas = [
        index if record.offset_delta is None else record.offset_delta
        for index, record in enumerate(records)
    ]
    body = b"".join(
        record_bytes(record, delta, record.timestamp_ms - base_timestamp_ms)
        for record, delta in zip(records, deltas, strict=True)
    )
    batch = bytearray(layout.HEADER_SIZE) + compression.compress(codec, body, level)
    layout.HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - layout.LOG_OVERHEAD,
        leader_epoch,
        layout.MAGIC_V2,
        0,
        attributes | codec,
        max(deltas, default=0) if last_offset_delta is None else last_offset_delta,
        base_timestamp_ms,
        max(timestamps, default=-1) if max_timestamp_ms is None else max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return sealed(batch)


def sealed(batch: bytes | bytearray) -> bytes:
    """`batch` with the CRC of what it holds."""
    crc = compression.crc32c(memoryview(batch)[layout.ATTRIBUTES_POS :])
    return bytes(batch[: layout.CRC_POS] + crc.to_bytes(4) + batch[layout.ATTRIBUTES_POS :])


def record_bytes(record: NewRecord, offset_delta: int, timestamp_delta: int) -> bytes:
    """One record, its length included; the deltas are to the batch's base offset and time."""
    content = b"".join(
        (
            b"\x00",  # attributes, unused
            zigzag(timestamp_delta),
            zigzag(offset_delta),
            _field(record.key),
            _field(record.value),
            zigzag(len(record.headers)),
            *(_field(key) + _field(value) for key, value in record.headers),
        )
    )
    return zigzag(len(content)) + content


def _field(content: Content | None) -> bytes:
    return zigzag(-1) if content is None else zigzag(len(content)) + content


def zigzag(number: int) -> bytes:
    """`number` as a signed varint, its sign in the lowest bit."""
    rest = number << 1 if number >= 0 else ((-number) << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
