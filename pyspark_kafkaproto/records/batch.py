"""The header of one record batch, read and checked in plain Python.

Serves the reference decoder; the kernel has a twin of `read_header` that refuses the same bytes at
the same position in the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import compression, layout

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


class BatchHeader(NamedTuple):
    """The fields of a batch that a reader needs, and where it lies in the block.

    pos: first byte of the batch; stop: first byte after it.
    """

    pos: int
    stop: int
    base_offset: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """The last offset the batch stands for, whether or not a record has it."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """Kafka's number of the compression, 0 for none."""
        return self.attributes & layout.CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether all rows have the broker's timestamp."""
        return bool(self.attributes & layout.LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & layout.TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds markers, never rows."""
        return bool(self.attributes & layout.CONTROL)

    def corrupt(self, reason: str) -> CorruptRecords:
        """The error to raise about this batch."""
        return CorruptRecords(reason, base_offset=self.base_offset, pos=self.pos)


def byte_view(block: Buffer, pos: int) -> memoryview:
    """`block` as bytes, once `pos` lies in it.

    Raises:
        ValueError: it does not.
    """
    view = memoryview(block).cast("B")
    if not 0 <= pos <= len(view):
        raise ValueError(f"pos {pos} is outside the block of {len(view)} bytes")
    return view


def read_header(block: memoryview, pos: int, limit_bytes: int) -> BatchHeader | None:
    """The header of the batch at `pos`, or None when the block's end cuts the batch.

    Raises:
        CorruptRecords: a length that no batch has, an unknown magic, more than `limit_bytes` of
            records (said of a cut batch too: asking for all of it would not help).
    """
    left = len(block) - pos
    if left < layout.LOG_OVERHEAD:
        return None
    base_offset, length = layout.FRONT.unpack_from(block, pos)
    reason = _misfit(block, pos, length, limit_bytes)
    if reason:
        raise CorruptRecords(reason, base_offset=base_offset, pos=pos)
    size = layout.LOG_OVERHEAD + length
    if left <= layout.MAGIC_POS or left < size:
        return None
    fields = layout.HEADER.unpack_from(block, pos)
    return BatchHeader(
        pos=pos,
        stop=pos + size,
        base_offset=base_offset,
        crc=fields[4],
        attributes=fields[5],
        last_offset_delta=fields[6],
        base_timestamp=fields[7],
        max_timestamp=fields[8],
        producer_id=fields[9],
        record_count=fields[12],
    )


def _misfit(block: memoryview, pos: int, length: int, limit_bytes: int) -> str:
    """What speaks against a batch of `length` at `pos`, as far as the block shows it."""
    if length < layout.MIN_LENGTH:
        return f"its length is {length}, the least is {layout.MIN_LENGTH}"
    if len(block) - pos <= layout.MAGIC_POS:
        return ""
    magic = int.from_bytes(block[pos + layout.MAGIC_POS : pos + layout.CRC_POS], signed=True)
    if magic != layout.MAGIC_V2:
        known = "a message set, which is not read" if magic in (0, 1) else "unknown"
        return f"its magic is {magic}, {known}: record batches have magic {layout.MAGIC_V2}"
    if length < layout.MIN_LENGTH_V2:
        return f"its length is {length}, the least of magic 2 is {layout.MIN_LENGTH_V2}"
    records_bytes = length - layout.MIN_LENGTH_V2
    if records_bytes > limit_bytes:
        return f"{records_bytes} bytes of records are more than the limit of {limit_bytes}"
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
        raise header.corrupt(
            f"it begins at offset {header.base_offset}, but the batch before it ends at "
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
    computed = compression.crc32c(batch[layout.ATTRIBUTES_POS :])
    if computed != header.crc:
        raise header.corrupt(f"its CRC-32C is {computed:#010x}, the header says {header.crc:#010x}")


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
