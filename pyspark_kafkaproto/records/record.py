"""The records of one batch, read and checked in plain Python.

`Walk` is the only place here that moves a position; it never reads beyond the record it is in.
The kernel has a twin that refuses the same bytes in the same words (`layout.py` has both).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark_kafkaproto.errors import CorruptRecords, TimestampOutOfRange
from pyspark_kafkaproto.records import layout
from pyspark_kafkaproto.records.batch import BatchHeader


class Record(NamedTuple):
    """The `ordinal`th record of a batch as it stands there; views are of the batch's bytes."""

    ordinal: int
    timestamp_delta: int
    offset_delta: int
    key: memoryview | None
    value: memoryview | None
    headers: list[tuple[memoryview, memoryview | None]]


class BadRecord(Exception):
    """What is wrong with the record or message being read."""


class Walk:
    """Iterates over the records of a batch, in order, up to its end.

    Raises (while iterating):
        CorruptRecords: a record that is not what the protocol says, or bytes after the last one.
    """

    def __init__(self, header: BatchHeader, records: memoryview) -> None:
        self._header = header
        self._data = records
        self._pos = 0
        self._stop = len(records)

    @property
    def pos(self) -> int:
        """How far the records were read, in bytes."""
        return self._pos

    def __iter__(self) -> Iterator[Record]:
        header = self._header
        last_delta = -1
        for index in range(header.record_count):
            try:
                record = self._record(index, last_delta)
            except BadRecord as fault:
                raise self._refused(index, fault) from None
            last_delta = record.offset_delta
            yield record
        left = len(self._data) - self._pos
        if left:
            raise header.corrupt(f"{left} bytes follow its {header.record_count} records")

    def timestamp_us(self, record: Record) -> int:
        """The record's timestamp in microseconds since 1970 UTC.

        Raises:
            TimestampOutOfRange: it does not fit 64 bits.
        """
        header = self._header
        if header.is_log_append_time:
            timestamp_us = header.max_timestamp * 1000
        else:
            timestamp_us = (header.base_timestamp + record.timestamp_delta) * 1000
        if not layout.INT64_MIN <= timestamp_us <= layout.INT64_MAX:
            reason = f"{self._where(record.ordinal)}: {layout.TIMESTAMP_RANGE}"
            raise header.corrupt(reason, TimestampOutOfRange)
        return timestamp_us

    def _refused(self, index: int, fault: BadRecord) -> CorruptRecords:
        return self._header.corrupt(f"{self._where(index)}: {fault}")

    def _where(self, index: int) -> str:
        return f"record {index} of {self._header.record_count}"

    def _record(self, index: int, last_delta: int) -> Record:
        self._stop = len(self._data)
        size = self._varint()
        if not 0 <= size <= self._stop - self._pos:
            raise BadRecord(layout.RECORD_LENGTH)
        self._stop = self._pos + size
        self._take(1, layout.VARINT_CUT)  # the record's attributes, which mean nothing
        timestamp_delta = self._varlong()
        offset_delta = self._varint()
        if not last_delta < offset_delta <= self._header.last_offset_delta:
            raise BadRecord(layout.OFFSET_ORDER)
        key = self._bytes()
        value = self._bytes()
        headers = self._headers()
        if self._pos != self._stop:
            raise BadRecord(layout.RECORD_LEFTOVER)
        return Record(index, timestamp_delta, offset_delta, key, value, headers)

    def _headers(self) -> list[tuple[memoryview, memoryview | None]]:
        count = self._varint()
        if not 0 <= count * layout.MIN_HEADER_SIZE <= self._stop - self._pos:
            raise BadRecord(layout.HEADER_COUNT)
        headers = []
        for _ in range(count):
            size = self._varint()
            if size < 0:
                raise BadRecord(layout.HEADER_KEY)
            key = self._take(size, layout.HEADER_KEY)
            headers.append((key, self._bytes()))
        return headers

    def _bytes(self) -> memoryview | None:
        size = self._varint()
        if size == -1:
            return None
        return self._take(size, layout.FIELD_LENGTH)

    def _take(self, size: int, fault: str) -> memoryview:
        if not 0 <= size <= self._stop - self._pos:
            raise BadRecord(fault)
        pos = self._pos
        self._pos = pos + size
        return self._data[pos : pos + size]

    def _varint(self) -> int:
        return self._zigzag(5, 32)

    def _varlong(self) -> int:
        return self._zigzag(10, 64)

    def _zigzag(self, max_bytes: int, bits: int) -> int:
        pos = self._pos
        if pos < self._stop and self._data[pos] < 0x80:  # nearly all are one byte
            self._pos = pos + 1
            return (self._data[pos] >> 1) ^ -(self._data[pos] & 1)
        number = shift = 0
        for _ in range(max_bytes):
            if self._pos >= self._stop:
                raise BadRecord(layout.VARINT_CUT)
            byte = self._data[self._pos]
            self._pos += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number >> bits:
                    break
                return (number >> 1) ^ -(number & 1)
            shift += 7
        raise BadRecord(layout.VARINT_TOO_LONG)
