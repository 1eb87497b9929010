"""The header of one batch, read and checked in plain Python.

A message of magic 0 or 1 counts as a batch that ends at its offset; `legacy.py` reads the rest.

Serves the reference decoder; the kernel has a twin of `read_header` that refuses the same bytes at
the same position in the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.errors import BatchTooLarge, CorruptRecords
from pyspark_kafkaproto.records import compression, layout

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


class BatchHeader(NamedTuple):
    """The fields of a batch that a reader needs, and where it lies in the block.

    pos: first byte of the batch; stop: first byte after it. A message of magic 0 or 1 has its own
    offset as `base_offset`, its own timestamp as `max_timestamp`, and one record.
    """

    pos: int
    stop: int
    magic: int
    base_offset: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int
    leader_epoch: int

    @property
    def last_offset(self) -> int:
        """The last offset the batch stands for, whether or not a record has it."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """Kafka's number of the compression, 0 for none."""
        return self.attributes & layout.CODEC_MASK

    @property
    def is_message(self) -> bool:
        """Whether it has the format of magic 0 or 1."""
        return self.magic < layout.MAGIC_V2

    @property
    def is_wrapper(self) -> bool:
        """Whether it is a message with others inside, which have offsets up to its own."""
        return self.is_message and bool(self.codec)

    @property
    def is_log_append_time(self) -> bool:
        """Whether all rows have the broker's timestamp."""
        return bool(self.attributes & layout.LOG_APPEND_TIME)

    @property
    def timestamp_type(self) -> int:
        """What Kafka's clients call the type of the rows' timestamps, as a number."""
        if self.magic == layout.MAGIC_V0:
            return layout.NO_TIMESTAMP_TYPE
        return int(self.is_log_append_time)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & layout.TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds markers, never rows."""
        return bool(self.attributes & layout.CONTROL)

    def corrupt(self, reason: str, kind: type[CorruptRecords] = CorruptRecords) -> CorruptRecords:
        """The error to raise about this batch."""
        return kind(reason, base_offset=self.base_offset, pos=self.pos)

    def not_decompressed(self, error: compression.DecompressionFailed) -> CorruptRecords:
        """The error to raise about this batch where decompressing it raised `error`."""
        is_over = isinstance(error, compression.ContentTooLarge)
        return self.corrupt(str(error), BatchTooLarge if is_over else CorruptRecords)


def byte_view(block: Buffer, pos: int) -> memoryview:
    """`block` as bytes, once `pos` lies in it.

    Raises:
        ValueError: it does not.
    """
    view = memoryview(block).cast("B")
    if not 0 <= pos <= len(view):
        raise ValueError(f"pos {pos} is outside the block of {len(view)} bytes")
    return view


def arrived_view(whole: memoryview, arrived: int, before: int) -> memoryview:
    """The first `arrived` bytes of a block that is still coming, of which `before` were there.

    Raises:
        ValueError: there are not as many, or there were more.
    """
    if not before <= arrived <= len(whole):
        raise ValueError(f"{arrived} bytes of {len(whole)} have arrived, after {before}")
    return whole[:arrived]


def base_offset(block: Buffer) -> int:
    """The offset that a block's first batch, of at least a few bytes, says it begins at."""
    first: int = layout.FRONT.unpack_from(block)[0]
    return first


def read_header(block: memoryview, pos: int, limit_bytes: int) -> BatchHeader | None:
    """The header of the batch at `pos`, or None when the block's end cuts the batch.

    Raises:
        CorruptRecords: a length that no batch has, an unknown magic.
        BatchTooLarge: more than `limit_bytes` of records (said of a cut batch too: asking for all
            of it would not help).
    """
    left = len(block) - pos
    if left < layout.LOG_OVERHEAD:
        return None
    base_offset, length = layout.FRONT.unpack_from(block, pos)
    reason = _misfit(block, pos, length)
    if reason:
        raise CorruptRecords(reason, base_offset=base_offset, pos=pos)
    if left > layout.MAGIC_POS:
        records_bytes = length - layout.MIN_LENGTHS[block[pos + layout.MAGIC_POS]]
        if records_bytes > limit_bytes:
            reason = f"{records_bytes} bytes of records are more than the limit of {limit_bytes}"
            raise BatchTooLarge(reason, base_offset=base_offset, pos=pos)
    size = layout.LOG_OVERHEAD + length
    if left <= layout.MAGIC_POS or left < size:
        return None
    if block[pos + layout.MAGIC_POS] != layout.MAGIC_V2:
        return _message_header(block, pos, pos + size)
    fields = layout.HEADER.unpack_from(block, pos)
    return BatchHeader(
        pos=pos,
        stop=pos + size,
        magic=layout.MAGIC_V2,
        base_offset=base_offset,
        crc=fields[4],
        attributes=fields[5],
        last_offset_delta=fields[6],
        base_timestamp=fields[7],
        max_timestamp=fields[8],
        producer_id=fields[9],
        record_count=fields[12],
        leader_epoch=fields[2],
    )


def _message_header(block: memoryview, pos: int, stop: int) -> BatchHeader:
    offset, _, crc, magic, attributes = layout.MESSAGE.unpack_from(block, pos)
    timestamp_ms = layout.NO_TIMESTAMP_MS
    known_bits = layout.CODEC_MASK
    if magic == layout.MAGIC_V1:
        (timestamp_ms,) = layout.MESSAGE_TIMESTAMP.unpack_from(block, pos + layout.MESSAGE.size)
        known_bits |= layout.LOG_APPEND_TIME
    return BatchHeader(
        pos=pos,
        stop=stop,
        magic=magic,
        base_offset=offset,
        crc=crc,
        attributes=attributes & known_bits,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=timestamp_ms,
        producer_id=layout.NO_PRODUCER_ID,
        record_count=1,
        leader_epoch=layout.NO_LEADER_EPOCH,
    )


def _misfit(block: memoryview, pos: int, length: int) -> str:
    """What speaks against a batch of `length` at `pos`, as far as the block shows it."""
    if length < layout.MIN_LENGTH:
        return f"its length is {length}, the least is {layout.MIN_LENGTH}"
    if len(block) - pos <= layout.MAGIC_POS:
        return ""
    magic = int.from_bytes(block[pos + layout.MAGIC_POS : pos + layout.CRC_POS], signed=True)
    if magic not in layout.MIN_LENGTHS:
        return f"its magic is {magic}, unknown: batches have magic 2, messages 0 or 1"
    least = layout.MIN_LENGTHS[magic]
    if length < least:
        return f"its length is {length}, the least of magic {magic} is {least}"
    return ""


def check_order(header: BatchHeader, previous_end: int) -> None:
    """A batch begins where the one before it ended, or later.

    The CRC does not cover the base offset, and Java drops the rows of a batch that steps back
    without a word: a damaged base offset would lose records.

    Raises:
        CorruptRecords: it steps back, or begins below 0.
    """
    if header.base_offset < 0:
        raise header.corrupt(f"its base offset {header.base_offset} is negative")
    if header.base_offset < previous_end:
        verb = "ends" if header.is_wrapper else "begins"
        raise header.corrupt(
            f"it {verb} at offset {header.base_offset}, but the batch before it ends at "
            f"{previous_end - 1}"
        )


def check_reach(header: BatchHeader) -> None:
    """A batch ends at an offset that has a next one inside int64, so that a reader can go on.

    Raises:
        CorruptRecords: it does not.
    """
    if header.last_offset_delta < 0:
        raise header.corrupt(f"its last offset delta {header.last_offset_delta} is negative")
    if header.last_offset >= layout.INT64_MAX:
        raise header.corrupt(
            f"base offset {header.base_offset} + last offset delta {header.last_offset_delta} "
            "goes beyond 64 bits"
        )


def check_crc(header: BatchHeader, batch: memoryview) -> None:
    """The bytes of the batch are those its producer or broker summed.

    Raises:
        CorruptRecords: they are not.
    """
    if header.is_message:
        name, computed = "CRC-32", compression.crc32(batch[layout.MAGIC_POS :])
    else:
        name, computed = "CRC-32C", compression.crc32c(batch[layout.ATTRIBUTES_POS :])
    if computed != header.crc:
        raise header.corrupt(f"its {name} is {computed:#010x}, the header says {header.crc:#010x}")


def check_count(header: BatchHeader, records_bytes: int) -> None:
    """The number of records is one that `records_bytes` can hold.

    Raises:
        CorruptRecords: it is not.
    """
    count = header.record_count
    if count < 0 or count * layout.MIN_RECORD_SIZE > records_bytes:
        raise header.corrupt(f"{records_bytes} bytes cannot hold {count} records")


def is_abort_marker(header: BatchHeader, key: Buffer | None) -> bool:
    """Whether a control batch whose first record has this key aborts its producer's transaction.

    Raises:
        CorruptRecords: no control record has such a key.
    """
    if header.producer_id <= layout.NO_PRODUCER_ID:
        return False
    if key is None or memoryview(key).nbytes < layout.CONTROL_KEY.size:
        raise header.corrupt("a control record needs a key of 4 bytes")
    version, kind = layout.CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise header.corrupt(f"a control record has the negative version {version}")
    return bool(kind == layout.ABORT_MARKER)
