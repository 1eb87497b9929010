"""Columns to record batches in plain Python: the oracle of the native encoder.

Law: any columns give the bytes of a batch or an error that names the row, never anything else. The
kernel gives the same bytes and the same errors. Also used where the kernel was not built.
Partitioners: Java's murmur2 (kafka-clients) and the CRC-32 of librdkafka's `consistent_random`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.records import compression, layout, writing
from pyspark_kafkaproto.records.encoding import NewRecord, record_bytes
from pyspark_kafkaproto.records.writing import (
    BinaryInput,
    Fault,
    HeadersInput,
    TimestampInput,
    WriteColumns,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


class BatchBuilder:
    """Grows one record batch, from the rows of any number of columns, for one partition.

    Args:
        codec: Kafka's number, 0 to 4; see `compression`.
        level: the codec's level, None for its default.
        limit_bytes: what the batch may have, uncompressed, header included; 61 to 2³¹-1.

    Attributes:
        rows: records appended so far.
        size_bytes: bytes so far, uncompressed, the 61 of the header included.

    Raises:
        LocalProtocolError: an unknown codec, a level it does not have, a limit no batch has.
    """

    def __init__(self, *, codec: int = 0, level: int | None = None, limit_bytes: int) -> None:
        writing.check_settings(codec, level, limit_bytes)
        self._codec = codec
        self._level = level
        self._limit_bytes = limit_bytes
        self._begin()

    def _begin(self) -> None:
        self.rows = 0
        self._body = bytearray()
        self._content: bytes | memoryview | None = None
        self._base_timestamp_ms = self._max_timestamp_ms = -1

    @property
    def size_bytes(self) -> int:
        """Bytes so far, uncompressed, the 61 of the header included."""
        return layout.HEADER_SIZE + len(self._body)

    def append(self, columns: WriteColumns, indices: Buffer | None, start: int, now_ms: int) -> int:
        """Append rows until the limit would be passed; a first record always fits.

        Args:
            columns: the rows; their buffers are read during the call only.
            indices: int32, the rows to append in this order; None for all of them.
            start: the first position in `indices` that is not appended yet.
            now_ms: the timestamp of rows without one, milliseconds since 1970 UTC.

        Returns:
            The position of the first row that was not appended; the number of rows at the end.

        Raises:
            InvalidRecord: a row with a timestamp before 1970, with a header whose key is null, or
                larger than a batch can be. The rows before it are appended: to leave it out, go
                on at the position after the error's.
            LocalProtocolError: an index, `start` or Arrow offsets point outside the rows or data;
                or the batch is compressed already.
        """
        if self._content is not None:
            raise writing.compressed_already()
        writing.check_now(now_ms)
        source = _Source(columns)
        order: Sequence[int] = range(columns.rows) if indices is None else _int32s(indices)
        writing.check_start(start, len(order))
        for position in range(start, len(order)):
            row = order[position]
            try:
                record = source.record(row, now_ms)
                if not self._add(record):
                    return position
            except _Refused as refused:
                raise writing.refusal(
                    refused.fault, row=row, position=position, detail=refused.detail
                ) from None
        return len(order)

    def _add(self, record: NewRecord) -> bool:
        """Add a record unless the batch would pass its limit; a first one always fits."""
        if _payload_bytes(record) > layout.INT32_MAX - layout.HEADER_SIZE:  # before it is copied
            if self.rows:
                return False
            raise _Refused(Fault.TOO_LARGE)
        time_ms = record.timestamp_ms
        base_ms = self._base_timestamp_ms if self.rows else time_ms
        content = record_bytes(record, self.rows, time_ms - base_ms)
        size = self.size_bytes + len(content)
        if self.rows and size > self._limit_bytes:
            return False
        if size > layout.INT32_MAX:
            raise _Refused(Fault.TOO_LARGE)
        self._base_timestamp_ms = base_ms
        self._max_timestamp_ms = max(self._max_timestamp_ms, time_ms)
        self._body += content
        self.rows += 1
        return True

    def compress(self) -> None:
        """What `finish` takes longest for, ahead of it, and in any thread: no row comes after it.

        Raises:
            LocalProtocolError: no row was appended.
        """
        if self._content is None:
            self._content = writing.compressed(
                memoryview(self._body), rows=self.rows, codec=self._codec, level=self._level
            )

    def finish(
        self,
        *,
        producer_id: int = layout.NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        """The whole record batch, from its base offset 0 to its last record; begins anew.

        The timestamps are CreateTime. Without idempotence the three numbers stay -1.

        Raises:
            LocalProtocolError: no row was appended.
        """
        self.compress()
        assert self._content is not None  # noqa: S101 - that is what it does
        batch = writing.sealed_batch(
            self._content,
            rows=self.rows,
            base_timestamp_ms=self._base_timestamp_ms,
            max_timestamp_ms=self._max_timestamp_ms,
            codec=self._codec,
            producer=writing.ProducerFields(
                producer_id, producer_epoch, base_sequence, is_transactional
            ),
        )
        self._begin()
        return batch


def _payload_bytes(record: NewRecord) -> int:
    """What keys and values have, those of headers too."""
    contents = [record.key, record.value, *(part for pair in record.headers for part in pair)]
    return sum(len(content) for content in contents if content is not None)


# --- reading the columns


class _Refused(Exception):
    """What is wrong with the row being read."""

    def __init__(self, fault: Fault, detail: int = 0) -> None:
        super().__init__(fault, detail)
        self.fault = fault
        self.detail = detail


def _part(name: str, buffer: Buffer, pos: int, size: int) -> memoryview:
    view = memoryview(buffer).cast("B")
    if len(view) < pos + size:
        raise writing.too_short(name, len(view), pos + size)
    return view[pos : pos + size]


def _int32s(buffer: Buffer) -> memoryview:
    view = memoryview(buffer).cast("B")
    if len(view) % 4:
        raise LocalProtocolError(f"{len(view)} bytes are not a number of int32")
    return view.cast("i")


class _Validity:
    """Which rows are not null."""

    def __init__(self, name: str, bits: Buffer | None, first: int, rows: int) -> None:
        writing.check_place(name, first, rows)
        self._first = first
        self._bits = None
        if bits is not None:
            self._bits = _part(name, bits, 0, (first + rows + 7) // 8 if rows else 0)

    def __getitem__(self, row: int) -> bool:
        at = self._first + row
        return self._bits is None or bool(self._bits[at // 8] >> at % 8 & 1)


class _Spans:
    """Where each row begins and ends in what lies below it; None for null."""

    def __init__(self, word: int, column: BinaryInput | HeadersInput, rows: int) -> None:
        name = writing.COLUMN_WORDS[word]
        self._word = word
        self._validity = _Validity(name, column.validity, column.first, rows)
        width = 8 if column.is_large else 4
        pos, size = (width * column.first, width * (rows + 1)) if rows else (0, 0)
        part = _part(name, column.offsets, pos, size)
        self._offsets = part.cast("q") if column.is_large else part.cast("i")

    def of(self, row: int, below: int) -> tuple[int, int] | None:
        if not self._validity[row]:
            return None
        begin, end = self._offsets[row], self._offsets[row + 1]
        if not 0 <= begin <= end <= below:
            raise _Refused(Fault.OFFSETS, self._word)
        return begin, end


class _Strings:
    """A column of byte strings or nulls."""

    def __init__(self, word: int, column: BinaryInput, rows: int) -> None:
        self._spans = _Spans(word, column, rows)
        self._data = memoryview(column.data).cast("B")

    def __getitem__(self, row: int) -> memoryview | None:
        span = self._spans.of(row, len(self._data))
        return None if span is None else self._data[slice(*span)]


class _Times:
    """A column of timestamps or nulls."""

    def __init__(self, column: TimestampInput, rows: int) -> None:
        self._validity = _Validity("timestamp", column.validity, column.first, rows)
        pos, size = (8 * column.first, 8 * rows) if rows else (0, 0)
        self._micros = _part("timestamp", column.micros, pos, size).cast("q")

    def of(self, row: int, now_ms: int) -> int:
        if not self._validity[row]:
            return now_ms
        micros: int = self._micros[row]
        if micros < 0:
            raise _Refused(Fault.TIMESTAMP, micros)
        return micros // 1000


class _Lists:
    """A column of headers."""

    def __init__(self, column: HeadersInput, rows: int) -> None:
        writing.check_place("headers", 0, column.pairs)
        self._spans = _Spans(2, column, rows)
        self._pairs = column.pairs
        self._is_pair = _Validity(
            "headers", column.pairs_validity, column.pairs_first, column.pairs
        )
        self._keys = _Strings(3, column.keys, column.pairs)
        self._values = _Strings(4, column.values, column.pairs)

    def __getitem__(self, row: int) -> list[tuple[memoryview, memoryview | None]]:
        begin, end = self._spans.of(row, self._pairs) or (0, 0)
        headers = []
        for pair in range(begin, end):
            key = self._keys[pair] if self._is_pair[pair] else None
            if key is None:
                raise _Refused(Fault.HEADER_KEY, pair - begin)
            headers.append((key, self._values[pair]))
        return headers


class _Source:
    """The rows of some columns as records."""

    def __init__(self, columns: WriteColumns) -> None:
        rows = columns.rows
        writing.check_place("the columns", 0, rows)
        self._rows = rows
        self._times = columns.timestamps and _Times(columns.timestamps, rows)
        self._key = columns.key and _Strings(0, columns.key, rows)
        self._value = columns.value and _Strings(1, columns.value, rows)
        self._headers = columns.headers and _Lists(columns.headers, rows)

    def record(self, row: int, now_ms: int) -> NewRecord:
        """One row, its fields looked at in the order of `Fault`."""
        if not 0 <= row < self._rows:
            raise _Refused(Fault.ROW)
        timestamp_ms = self._times.of(row, now_ms) if self._times else now_ms
        key = self._key[row] if self._key else None
        value = self._value[row] if self._value else None
        headers = self._headers[row] if self._headers else ()
        return NewRecord(value, key, timestamp_ms, headers)


# --- partitions


def partition_keys(columns: WriteColumns, partitions: int, partitioner: str) -> Buffer:
    """The partition of each key; see `pyspark_kafkaproto.records.partition_keys`."""
    writing.check_partitioning(partitions, partitioner)
    writing.check_place("the columns", 0, columns.rows)
    if columns.key is None:
        return array("i", [-1]) * columns.rows
    keys = _Strings(0, columns.key, columns.rows)
    place = _murmur2_partition if partitioner == writing.MURMUR2 else _crc32_partition
    placed = array("i")
    for row in range(columns.rows):
        try:
            key = keys[row]
        except _Refused as refused:
            raise writing.refusal(
                refused.fault, row=row, position=row, detail=refused.detail
            ) from None
        placed.append(-1 if key is None else place(bytes(key), partitions))
    return placed


def _murmur2_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def _crc32_partition(key: bytes, partitions: int) -> int:
    # librdkafka takes an empty key for none.
    return compression.crc32(key) % partitions if key else -1


def murmur2(key: bytes) -> int:
    """Java's `Utils.murmur2` of a key, unsigned: Austin Appleby's MurmurHash2, Kafka's seed."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    hashed = 0x9747B28C ^ len(key) & mask
    whole = len(key) & ~3
    for pos in range(0, whole, 4):
        part = int.from_bytes(key[pos : pos + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        hashed = hashed * factor & mask ^ part
    if whole < len(key):
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return hashed ^ hashed >> 15


def group_rows(partition_of_row: Buffer, partitions: int) -> tuple[Buffer, Buffer]:
    """Rows by partition; see `pyspark_kafkaproto.records.group_rows`."""
    writing.check_partitioning(partitions, writing.MURMUR2)
    placed = _int32s(partition_of_row)
    writing.check_numbering(len(placed))
    counts = [0] * partitions
    for row, partition in enumerate(placed):
        if not 0 <= partition < partitions:
            raise writing.no_partition(row, partition, partitions)
        counts[partition] += 1
    starts = array("i", accumulate(counts, initial=0))
    return array("i", sorted(range(len(placed)), key=placed.__getitem__)), starts
