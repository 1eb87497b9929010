"""Record batches to columns in plain Python: the oracle of the native kernel.

Law: any bytes give columns or CorruptRecords, never anything else. The kernel says the same about
the same bytes, at the same position and in the same words. This one is also used where the kernel
was not built. Format: `layout.py`; transactions: KIP-98; it must not know pyarrow or a topic.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.records import compression, layout
from pyspark_kafkaproto.records.batch import (
    BatchHeader,
    arrived_view,
    byte_view,
    check_count,
    check_crc,
    check_order,
    check_reach,
    is_abort_marker,
    read_header,
)
from pyspark_kafkaproto.records.columns import (
    BinaryColumn,
    Columns,
    Decoded,
    HeadersColumn,
    Skimmed,
)
from pyspark_kafkaproto.records.legacy import MessageWalk, unwrapped
from pyspark_kafkaproto.records.record import Record, Walk
from pyspark_kafkaproto.records.transactions import AbortedTransactions

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


def decode(  # noqa: PLR0913 - the signature of `records.decode`
    block: Buffer,
    *,
    pos: int = 0,
    start: int,
    stop: int,
    wanted: Columns,
    aborted: AbortedTransactions | Sequence[tuple[int, int]] = (),
    check_crcs: bool = True,
    batch_limit_bytes: int = layout.DEFAULT_BATCH_LIMIT_BYTES,
    chunk_bytes: int = layout.DEFAULT_CHUNK_BYTES,
    arrived: int | None = None,
    more: Callable[[], int] | None = None,
    source: object = None,
) -> Decoded:
    """Decode whole batches; see `pyspark_kafkaproto.records.decode`."""
    del source  # `more` gives the same bytes
    limit_bytes = min(batch_limit_bytes, layout.INT32_MAX)
    reading = _Reading(start, stop, wanted, AbortedTransactions.copy_of(aborted))
    reading.check_crcs = check_crcs
    reading.limit_bytes = limit_bytes
    # Arrow's offsets are 32 bits: whatever fits a chunk fits a column.
    chunk_bytes = min(chunk_bytes, layout.INT32_MAX - limit_bytes)
    whole = byte_view(block, pos)
    known = len(whole) if arrived is None else arrived
    reading.run(_Arriving(whole, known, pos, more), pos, chunk_bytes)
    return reading.result()


def skim(block: Buffer, pos: int = 0) -> Skimmed:
    """Read the headers alone; see `pyspark_kafkaproto.records.skim`."""
    next_offset: int | None = None
    batches, leader_epoch = 0, layout.NO_LEADER_EPOCH
    view = byte_view(block, pos)
    while header := read_header(view, pos, layout.INT32_MAX):
        check_order(header, next_offset or 0)
        check_reach(header)
        next_offset = header.last_offset + 1
        leader_epoch = header.leader_epoch
        pos = header.stop
        batches += 1
    missing_bytes = 0
    if len(view) - pos >= layout.LOG_OVERHEAD:
        missing_bytes = layout.LOG_OVERHEAD + layout.FRONT.unpack_from(view, pos)[1]
    return Skimmed(next_offset, pos, batches, missing_bytes, leader_epoch)


class _Arriving:
    """A block, and how much of it is there.

    Attributes:
        view: what is there.
    """

    def __init__(
        self, whole: memoryview, arrived: int, pos: int, more: Callable[[], int] | None
    ) -> None:
        self._whole = whole
        self._more = more
        self.view = arrived_view(whole, arrived, pos)

    def grow(self) -> bool:
        """Wait for more of it; False when no more will come."""
        before = len(self.view)
        if self._more is None:
            return False
        self.view = arrived_view(self._whole, self._more(), before)
        return len(self.view) > before


class _Reading:
    """One call of `decode`: the columns as they grow, and how far reading came."""

    check_crcs = True
    limit_bytes = layout.DEFAULT_BATCH_LIMIT_BYTES

    def __init__(
        self, start: int, stop: int, wanted: Columns, aborted: AbortedTransactions
    ) -> None:
        self._start = start
        self._stop = stop
        self._wanted = wanted
        self._aborted = aborted
        self._pos = 0
        self._next_offset = start
        self._batches = 0
        self._decompressed_bytes = 0
        self._max_batch_bytes = 0
        self._rows = _Rows(wanted)

    def run(self, block: _Arriving, pos: int, chunk_bytes: int) -> None:
        """Read batches from `pos` until the block, the range or the chunk ends."""
        self._pos = pos
        previous_end = 0
        while self._next_offset < self._stop:
            is_full = self._decompressed_bytes and self._decompressed_bytes >= chunk_bytes
            header = read_header(block.view, self._pos, self.limit_bytes)
            if header is None:
                if is_full or not block.grow():
                    return
                continue
            check_order(header, previous_end)
            if is_full:
                return
            if header.base_offset >= self._stop and not header.is_wrapper:
                self._next_offset = self._stop  # all that lies before the stop has been read
                return
            previous_end = (
                self._read(header, block.view[header.pos : header.stop], previous_end) + 1
            )
            self._next_offset = min(max(self._next_offset, previous_end), self._stop)
            self._pos = header.stop
            self._batches += 1

    def _read(self, header: BatchHeader, batch: memoryview, previous_end: int) -> int:
        """Read one batch; its last offset."""
        if self.check_crcs:
            check_crc(header, batch)
        check_reach(header)
        if header.last_offset < self._next_offset and not (self._aborted and header.is_control):
            # All of it lies before what was asked for; a marker counts all the same.
            return header.last_offset
        if header.is_message:
            return self._read_message(header, batch, previous_end)
        if self._is_aborted(header):
            return header.last_offset
        records = self._records(header, batch[layout.HEADER_SIZE :])
        check_count(header, len(records))
        self._account(len(records))
        walk = Walk(header, records)
        if header.is_control:
            self._read_control(header, walk)
        else:
            self._read_rows(header, walk)
        return header.last_offset

    def _read_message(self, header: BatchHeader, message: memoryview, previous_end: int) -> int:
        """Read a message of magic 0 or 1, or those that it wraps; the last one's offset."""
        messages = unwrapped(header, message, self.limit_bytes) if header.codec else message
        walk = MessageWalk(header, messages, previous_end, check_crcs=self.check_crcs)
        self._account(len(messages))
        self._read_rows(header, walk)
        return walk.last_offset

    def _account(self, size_bytes: int) -> None:
        self._decompressed_bytes += size_bytes
        self._max_batch_bytes = max(self._max_batch_bytes, size_bytes)

    def _is_aborted(self, header: BatchHeader) -> bool:
        if not self._aborted or header.producer_id <= layout.NO_PRODUCER_ID:
            return False
        self._aborted.reach(header.last_offset)
        return (
            header.is_transactional
            and not header.is_control
            and header.producer_id in self._aborted
        )

    def _records(self, header: BatchHeader, body: memoryview) -> memoryview:
        if not header.codec or not (body or header.record_count):
            return body  # an empty batch is empty in every codec
        try:
            return memoryview(compression.decompress(header.codec, body, self.limit_bytes))
        except compression.DecompressionFailed as error:
            raise header.not_decompressed(error) from error

    def _read_control(self, header: BatchHeader, walk: Walk) -> None:
        """Control records are checked like others, and are never rows."""
        keys = [record.key for record in walk]
        if self._aborted and keys and is_abort_marker(header, keys[0]):
            self._aborted.end(header.producer_id)

    def _read_rows(self, header: BatchHeader, walk: Walk) -> None:
        first = self._next_offset - header.base_offset
        stop = self._stop - header.base_offset
        has_timestamps = Columns.TIMESTAMP in self._wanted
        records, timestamps = [], []
        for record in walk:
            if first <= record.offset_delta < stop:
                records.append(record)
                if has_timestamps:
                    timestamps.append(walk.timestamp_us(record))
        self._rows.extend(header, records, timestamps)

    def result(self) -> Decoded:
        """What was read so far."""
        rows = self._rows
        return Decoded(
            rows=rows.count,
            pos=self._pos,
            next_offset=self._next_offset,
            passed_over=max(0, self._next_offset - self._start) - rows.count,
            batches=self._batches,
            decompressed_bytes=self._decompressed_bytes,
            max_batch_bytes=self._max_batch_bytes,
            aborted=self._aborted,
            **rows.columns(),
        )


class _Rows:
    """The wanted columns, growing batch by batch."""

    def __init__(self, wanted: Columns) -> None:
        self.count = 0
        self._wanted = wanted
        self._offsets = array("q")
        self._timestamps = array("q")
        self._timestamp_types = array("i")
        self._key = _Binary()
        self._value = _Binary()
        self._headers = _Headers()

    def extend(
        self, header: BatchHeader, records: Sequence[Record], timestamps_us: Sequence[int]
    ) -> None:
        """Add the wanted fields of some of a batch's records."""
        wanted = self._wanted
        self.count += len(records)
        if Columns.OFFSET in wanted:
            self._offsets.extend(header.base_offset + record.offset_delta for record in records)
        if Columns.TIMESTAMP in wanted:
            self._timestamps.extend(timestamps_us)
        if Columns.TIMESTAMP_TYPE in wanted:
            self._timestamp_types.extend([header.timestamp_type] * len(records))
        if Columns.KEY in wanted:
            self._key.extend([record.key for record in records])
        if Columns.VALUE in wanted:
            self._value.extend([record.value for record in records])
        if Columns.HEADERS in wanted:
            self._headers.extend([record.headers for record in records])

    def columns(self) -> dict[str, Any]:
        """The columns that were wanted, by the names of `Decoded`'s attributes."""
        built = {
            Columns.OFFSET: ("offsets", self._offsets),
            Columns.TIMESTAMP: ("timestamps", self._timestamps),
            Columns.TIMESTAMP_TYPE: ("timestamp_types", self._timestamp_types),
            Columns.KEY: ("key", self._key.column()),
            Columns.VALUE: ("value", self._value.column()),
            Columns.HEADERS: ("headers", self._headers.column()),
        }
        return dict(built[column] for column in built if column in self._wanted)


class _Validity:
    """Which rows are not null."""

    def __init__(self) -> None:
        self._valid: list[bool] = []

    def extend(self, valid: Iterable[bool]) -> None:
        """Add rows; False is null."""
        self._valid += valid

    def bitmap(self) -> bytes | None:
        """A bit per row, the least significant first; None when no row is null."""
        if all(self._valid):
            return None
        digits = "".join("01"[is_valid] for is_valid in reversed(self._valid))
        return int(digits, 2).to_bytes((len(digits) + 7) // 8, "little")


class _Binary:
    """A column of byte strings or nulls."""

    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._data = bytearray()
        self._validity = _Validity()

    def extend(self, contents: Sequence[memoryview | None]) -> None:
        """Add rows; None is null."""
        sizes = (0 if content is None else len(content) for content in contents)
        self._offsets.extend(accumulate(sizes, initial=self._offsets.pop()))
        self._data += b"".join(content for content in contents if content is not None)
        self._validity.extend(content is not None for content in contents)

    def column(self) -> BinaryColumn:
        """The rows so far."""
        return BinaryColumn(self._offsets, self._data, self._validity.bitmap())


class _Headers:
    """A column of lists of (key, value); a record without headers is null."""

    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._validity = _Validity()
        self._keys = _Binary()
        self._values = _Binary()

    def extend(self, rows: Sequence[Sequence[tuple[memoryview, memoryview | None]]]) -> None:
        """Add rows; no headers make a null."""
        self._offsets.extend(accumulate(map(len, rows), initial=self._offsets.pop()))
        self._validity.extend(map(bool, rows))
        self._keys.extend([key for headers in rows for key, _ in headers])
        self._values.extend([value for headers in rows for _, value in headers])

    def column(self) -> HeadersColumn:
        """The rows so far."""
        return HeadersColumn(
            self._offsets,
            self._validity.bitmap(),
            self._offsets[-1],
            self._keys.column(),
            self._values.column(),
        )
