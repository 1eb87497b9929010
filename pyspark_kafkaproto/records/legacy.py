"""Messages of magic 0 and 1 and the sets inside compressed ones, read in plain Python.

Serves the reference decoder; the kernel takes `unwrapped` and `check_wrapper` from here, which are
one call per compressed message, and has a twin of the walk (`_message.pxd`) that refuses the same
bytes in the same words. Format: `layout.py`, KIP-31 (relative offsets), KIP-32 (timestamps). It
must not know columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark_kafkaproto.records import compression, layout, lz4_header
from pyspark_kafkaproto.records.batch import BatchHeader
from pyspark_kafkaproto.records.record import BadRecord, Record, Walk


class Message(NamedTuple):
    """One message as it stands in its set; views are of the set's bytes."""

    offset: int
    timestamp_ms: int
    codec: int
    key: memoryview | None
    value: memoryview | None
    stop: int


class MessageWalk(Walk):
    """Iterates over the records of a message: itself, or those of the set that it wraps.

    All are looked through before the first is given: where relative offsets begin is known once the
    last of them is.

    Args:
        header: of the message itself.
        messages: the message, or the set that it wraps.
        previous_end: the first offset after the batch before it.
        check_crcs: whether to compute the CRC-32 of each message inside a wrapper.

    Attributes:
        last_offset: of the last message.

    Raises:
        CorruptRecords: a message that is not what the protocol says.
    """

    def __init__(
        self, header: BatchHeader, messages: memoryview, previous_end: int, *, check_crcs: bool
    ) -> None:
        super().__init__(header, messages)
        self._check_crcs = check_crcs and header.is_wrapper  # the outermost was checked before
        count, first, last = self._survey()
        self._shift = check_wrapper(header, count, first, last, previous_end)
        self.last_offset = last + self._shift

    def __iter__(self) -> Iterator[Record]:
        header = self._header
        pos = ordinal = 0
        while pos < self._stop:
            message = read_message(self._data, pos, header.magic, check_crc=False)
            delta = message.offset + self._shift - header.base_offset
            yield Record(ordinal, message.timestamp_ms, delta, message.key, message.value, [])
            pos = message.stop
            ordinal += 1

    def _survey(self) -> tuple[int, int, int]:
        """How many messages there are, all of them checked, and between which offsets."""
        pos = count = 0
        first, last = 0, -1
        while pos < self._stop:
            try:
                message = self._next(pos, last)
            except BadRecord as fault:
                raise self._refused(count, fault) from None
            pos, last = message.stop, message.offset
            first = first if count else last
            count += 1
        return count, first, last

    def _next(self, pos: int, last: int) -> Message:
        message = read_message(self._data, pos, self._header.magic, check_crc=self._check_crcs)
        if message.codec:
            raise BadRecord(layout.MESSAGE_NESTED)
        if message.offset <= last:
            raise BadRecord(layout.MESSAGE_ORDER)
        return message

    def _where(self, index: int) -> str:
        return f"message {index}"


def read_message(data: memoryview, pos: int, magic: int, *, check_crc: bool) -> Message:
    """The message at `pos`, whose magic has to be `magic`.

    Raises:
        BadRecord: it is not what the protocol says.
    """
    left = len(data) - pos
    if left < layout.MESSAGE.size:
        raise BadRecord(layout.MESSAGE_LENGTH)
    offset, length, crc, own_magic, attributes = layout.MESSAGE.unpack_from(data, pos)
    if not layout.MIN_LENGTH <= length <= left - layout.LOG_OVERHEAD:
        raise BadRecord(layout.MESSAGE_LENGTH)
    if own_magic != magic:
        raise BadRecord(layout.MESSAGE_MAGIC)
    if length < layout.MIN_LENGTHS[magic]:
        raise BadRecord(layout.MESSAGE_LENGTH)
    stop = pos + layout.LOG_OVERHEAD + length
    if check_crc and compression.crc32(data[pos + layout.MAGIC_POS : stop]) != crc:
        raise BadRecord(layout.MESSAGE_CRC)
    pos += layout.MESSAGE.size
    timestamp_ms = layout.NO_TIMESTAMP_MS
    if magic == layout.MAGIC_V1:
        (timestamp_ms,) = layout.MESSAGE_TIMESTAMP.unpack_from(data, pos)
        pos += layout.MESSAGE_TIMESTAMP.size
    key, pos = _field(data, pos, stop)
    value, pos = _field(data, pos, stop)
    if pos != stop:
        raise BadRecord(layout.RECORD_LEFTOVER)
    return Message(offset, timestamp_ms, attributes & layout.CODEC_MASK, key, value, stop)


def _field(data: memoryview, pos: int, stop: int) -> tuple[memoryview | None, int]:
    """A key or value, and the position after it."""
    if stop - pos < layout.MESSAGE_FIELD.size:
        raise BadRecord(layout.FIELD_LENGTH)
    (size,) = layout.MESSAGE_FIELD.unpack_from(data, pos)
    pos += layout.MESSAGE_FIELD.size
    if size == -1:
        return None, pos
    if not 0 <= size <= stop - pos:
        raise BadRecord(layout.FIELD_LENGTH)
    return data[pos : pos + size], pos + size


def unwrapped(header: BatchHeader, message: memoryview, limit_bytes: int) -> memoryview:
    """The set of messages that a compressed message wraps, at most `limit_bytes` of it.

    Raises:
        CorruptRecords: there is none, or it cannot be decompressed.
    """
    try:
        value = read_message(message, 0, header.magic, check_crc=False).value
    except BadRecord as fault:
        raise header.corrupt(f"message 0: {fault}") from None
    if value is None:
        raise header.corrupt("it is compressed, but its value is null")
    if header.codec == compression.ZSTD:  # KIP-110: newer than these formats
        raise header.corrupt(f"a message of magic {header.magic} cannot be compressed with zstd")
    if header.codec == compression.LZ4 and header.magic == layout.MAGIC_V0:
        value = lz4_header.repaired(value)
    try:
        return memoryview(compression.decompress(header.codec, value, limit_bytes))
    except compression.DecompressionFailed as error:
        raise header.not_decompressed(error) from error


def check_wrapper(header: BatchHeader, count: int, first: int, last: int, previous_end: int) -> int:
    """What is to be added to the offsets of a message's `count` messages to make them absolute.

    The offset of a wrapper is 0 as a producer sends it: those inside count from 0, whatever the
    magic, and end where they end. As a broker stores it, it is the last one's. The Java client
    reads magic 0 without a look at that, and would pass over rows that stand elsewhere.

    Args:
        header: of the message itself, which wraps the others or is the only one.
        count: how many there are.
        first: the offset of the first one, as it stands there.
        last: that of the last one.
        previous_end: the first offset after the batch before them.

    Raises:
        CorruptRecords: no message, or offsets that do not fit those around.
    """
    if not count:
        raise header.corrupt("it is compressed, but no message is in it")
    own = header.base_offset
    shift = own - last if own and header.magic == layout.MAGIC_V1 else 0
    if shift < 0 or (own and last + shift != own) or last - own > layout.INT32_MAX:
        raise header.corrupt(
            f"the last message in it has offset {last}, which does not fit its own offset {own}"
        )
    if first + shift < previous_end:
        raise header.corrupt(
            f"the first message in it has offset {first + shift}, but the batch before it ends at "
            f"{previous_end - 1}"
        )
    return shift
