"""What both encoders share: columns to write, the refusals, and the sealing of a record batch.

`reference_write.py` and `_kernel_write.pyx` turn rows into records; the 61 bytes before them, their
compression and their CRC are made here, once per batch. This room must not know pyarrow or topics.
Format: `layout.py` (KIP-98). Idempotent fields: KIP-98, "Producer idempotence".
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark_kafkaproto.errors import InvalidRecord, LocalProtocolError
from pyspark_kafkaproto.records import compression, layout

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency

MURMUR2: Final = "murmur2"
CONSISTENT_RANDOM: Final = "consistent_random"

_PRODUCER: Final = Struct(">qhi")  # producer id, epoch, base sequence
_PRODUCER_POS: Final = 43
_MAX_PLACE: Final = 1 << 48  # of a row in its buffers: nothing is that long


class BinaryInput(NamedTuple):
    """Byte strings to write, in the buffers of an Arrow array, sliced or not.

    offsets: int32, or int64 where `is_large`. data: the bytes. validity: a bit per row, least
    significant first, 0 for null; None when no row is null. first: where row 0 stands in offsets
    and validity.
    """

    offsets: Buffer
    data: Buffer
    validity: Buffer | None = None
    is_large: bool = False
    first: int = 0


class TimestampInput(NamedTuple):
    """Timestamps to write: int64, microseconds since 1970 UTC; the rest as in BinaryInput."""

    micros: Buffer
    validity: Buffer | None = None
    first: int = 0


class HeadersInput(NamedTuple):
    """Lists of (key, value) to write; a null or an empty list is a record without headers.

    offsets, validity, is_large, first: of the lists, as in BinaryInput; they count pairs.
    pairs: how many there are. pairs_validity, pairs_first: which of them are not null; a null pair
    is refused as a null key is. keys, values: one of each per pair.
    """

    offsets: Buffer
    pairs: int
    keys: BinaryInput
    values: BinaryInput
    validity: Buffer | None = None
    is_large: bool = False
    first: int = 0
    pairs_validity: Buffer | None = None
    pairs_first: int = 0


class WriteColumns(NamedTuple):
    """`rows` rows to write. A column that is None is null in every row.

    Rows without a timestamp get the time at which they are appended.
    """

    rows: int
    value: BinaryInput | None = None
    key: BinaryInput | None = None
    timestamps: TimestampInput | None = None
    headers: HeadersInput | None = None


# --- refusals


class Fault(IntEnum):
    """Why a row is not written, in the order in which a row is looked at."""

    ROW = 1
    TIMESTAMP = 2
    OFFSETS = 3
    HEADER_KEY = 4
    TOO_LARGE = 5


COLUMN_WORDS: Final = ("key", "value", "headers", "header key", "header value")


def refusal(fault: int, *, row: int, position: int, detail: int) -> Exception:
    """The error about one row.

    Args:
        fault: one of `Fault`.
        row: its number in the columns.
        position: where it stands among the rows to append.
        detail: of TIMESTAMP the microseconds, of OFFSETS an index of COLUMN_WORDS, of HEADER_KEY
            which header.
    """
    if fault == Fault.ROW:
        return LocalProtocolError(f"position {position} asks for row {row}, which is not there")
    if fault == Fault.OFFSETS:
        return LocalProtocolError(
            f"row {row}: the Arrow offsets of its {COLUMN_WORDS[detail]} point outside the data"
        )
    if fault == Fault.TIMESTAMP:
        reason = f"its timestamp, {detail} microseconds, is before 1970: Kafka has no such time"
    elif fault == Fault.HEADER_KEY:
        reason = f"the key of its header {detail} is null: only values can be"
    else:
        reason = f"it is larger than a record batch can be, {layout.INT32_MAX} bytes"
    return InvalidRecord(reason, row=row, position=position)


def check_settings(codec: int, level: int | None, limit_bytes: int) -> None:
    """Refuse what no builder can work with, before a row is appended.

    Raises:
        LocalProtocolError: an unknown codec, a level it does not have, a limit that no batch has.
    """
    if codec not in compression.NAMES:
        raise LocalProtocolError(f"compression codec {codec} is unknown")
    if not layout.HEADER_SIZE <= limit_bytes <= layout.INT32_MAX:
        raise LocalProtocolError(
            f"a batch is limited to {limit_bytes} bytes: "
            f"{layout.HEADER_SIZE} to {layout.INT32_MAX} are possible"
        )
    if level is None:
        return
    try:
        compression.compress(codec, b"", level)
    except (ValueError, RuntimeError) as error:
        name = compression.NAMES[codec]
        raise LocalProtocolError(f"{name} compression has no level {level}: {error}") from error


def check_place(name: str, first: int, rows: int) -> None:
    """Refuse numbers of rows that no buffer has, so that sizes made of them do not overflow."""
    if not (0 <= first < _MAX_PLACE and 0 <= rows < _MAX_PLACE):
        raise LocalProtocolError(f"{name}: {rows} rows from {first} on is not a range of rows")


def check_numbering(rows: int) -> None:
    """Rows can be numbered with int32."""
    if rows > layout.INT32_MAX:
        raise LocalProtocolError(f"{rows} rows are more than int32 can number")


def compressed_already() -> LocalProtocolError:
    """A batch takes no rows once it is compressed."""
    return LocalProtocolError("rows are appended to a record batch that is compressed already")


def check_start(start: int, count: int) -> None:
    """The first position to append is one there is, or the end."""
    if not 0 <= start <= count:
        raise LocalProtocolError(f"start {start} is not within the {count} rows to append")


def check_now(now_ms: int) -> None:
    """The time of rows without one is a time."""
    if not 0 <= now_ms <= layout.INT64_MAX:
        raise LocalProtocolError(f"now_ms {now_ms} is not a time since 1970")


def check_partitioning(partitions: int, partitioner: str) -> None:
    """There is at least one partition, and the partitioner is one that places keys."""
    if not 0 < partitions <= layout.INT32_MAX:
        raise LocalProtocolError(f"a topic has at least one partition, not {partitions}")
    if partitioner not in (MURMUR2, CONSISTENT_RANDOM):
        raise LocalProtocolError(
            f"no partitioner {partitioner!r} places keys: {MURMUR2} and {CONSISTENT_RANDOM} do"
        )


def too_short(name: str, size: int, needed: int) -> LocalProtocolError:
    """A buffer does not reach as far as its rows."""
    return LocalProtocolError(f"{name}: a buffer of {size} bytes, its rows need {needed}")


def no_partition(row: int, partition: int, partitions: int) -> LocalProtocolError:
    """A row is placed where there is nothing."""
    return LocalProtocolError(
        f"row {row} is placed in partition {partition}, there are {partitions}"
    )


# --- a whole batch


class ProducerFields(NamedTuple):
    """The idempotent fields of a batch; -1 without idempotence."""

    producer_id: int = layout.NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False


def compressed(
    records: memoryview, *, rows: int, codec: int, level: int | None
) -> bytes | memoryview:
    """The content of a batch of `rows` records.

    Raises:
        LocalProtocolError: there are no rows.
    """
    if rows == 0:
        raise LocalProtocolError("a record batch is finished without a record in it")
    return records if codec == compression.NONE else compression.compress(codec, records, level)


def sealed_batch(
    content: bytes | memoryview,
    *,
    rows: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    codec: int,
    producer: ProducerFields,
) -> bytes:
    """`content`, compressed before, behind the header that says so, its CRC included.

    Raises:
        LocalProtocolError: compression made the batch too large.
    """
    size = layout.HEADER_SIZE + len(content)
    if size > layout.INT32_MAX:
        raise LocalProtocolError(f"a record batch of {size} bytes is larger than one can be")
    header = layout.HEADER.pack(
        0,
        size - layout.LOG_OVERHEAD,
        -1,  # the broker knows the leader epoch
        layout.MAGIC_V2,
        0,
        codec | (layout.TRANSACTIONAL if producer.is_transactional else 0),
        rows - 1,
        base_timestamp_ms,
        max_timestamp_ms,
        producer.producer_id,
        producer.producer_epoch,
        producer.base_sequence,
        rows,
    )
    crc = compression.crc32c(content, compression.crc32c(header[layout.ATTRIBUTES_POS :]))
    return b"".join(
        (header[: layout.CRC_POS], crc.to_bytes(4), header[layout.ATTRIBUTES_POS :], content)
    )


def restamped(
    batch: Buffer,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool = False,
) -> bytes:
    """A finished batch under other idempotent fields, its CRC made anew; the records are kept.

    Raises:
        LocalProtocolError: `batch` is shorter than a header.
    """
    changed = bytearray(batch)
    if len(changed) < layout.HEADER_SIZE:
        raise LocalProtocolError(f"{len(changed)} bytes are no record batch")
    _PRODUCER.pack_into(changed, _PRODUCER_POS, producer_id, producer_epoch, base_sequence)
    changed[layout.ATTRIBUTES_POS + 1] &= 0xFF & ~layout.TRANSACTIONAL
    if is_transactional:
        changed[layout.ATTRIBUTES_POS + 1] |= layout.TRANSACTIONAL
    crc = compression.crc32c(memoryview(changed)[layout.ATTRIBUTES_POS :])
    changed[layout.CRC_POS : layout.ATTRIBUTES_POS] = crc.to_bytes(4)
    return bytes(changed)
