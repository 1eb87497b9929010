# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The native codec: record batches, and the messages before them, to column buffers.

Law: any bytes give columns or CorruptRecords, never anything else, and never more memory than a
small multiple of the bytes that are there. Only `take` functions move over bytes from the wire,
each after a look at what is left. Sizes of allocations follow from bytes that were seen, never from
a number that was read.

`_block` reads headers, `_walk` records (`_plain` nearly all of them), `_message` those of old,
`_unpacking` what is small and compressed, and `_memory` holds the columns. `reference.py` is all of
it in plain Python. It must not know pyarrow.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memset

from pyspark_kafkaproto.records._batch cimport (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    Batch,
    int32_at,
    is_wrapper,
)
from pyspark_kafkaproto.records._block cimport Block, crc32_tables
from pyspark_kafkaproto.records._columns cimport (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Rows,
    free_rows,
    reserve_rows,
)
from pyspark_kafkaproto.records._cursor cimport (
    NO_MEMORY,
    NOGIL_BYTES,
    TIMESTAMP_RANGE,
    Bytes,
    unlikely,
)
from pyspark_kafkaproto.records._memory cimport (
    binary_column,
    handed_over,
    headers_column,
    take_kept_rows,
)
from pyspark_kafkaproto.records._message cimport MessageSet, append_messages, survey
from pyspark_kafkaproto.records._unpacking cimport (
    SNAPPY,
    Unpacker,
    begin,
    end,
    may_unpack,
    unpack,
)
from pyspark_kafkaproto.records._walk cimport Outcome, walk

from pyspark_kafkaproto.errors import CorruptRecords, TimestampOutOfRange
from pyspark_kafkaproto.records import batch as _batch
from pyspark_kafkaproto.records import compression as _compression
from pyspark_kafkaproto.records import layout as _layout
from pyspark_kafkaproto.records import legacy as _legacy
from pyspark_kafkaproto.records.columns import Decoded, Skimmed
from pyspark_kafkaproto.records.transactions import AbortedTransactions

cdef enum:
    LEADER_EPOCH_POS = 12
    MIN_RECORD_SIZE = 7
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    NO_LEADER_EPOCH = -1
    SMALL_BYTES = 64 << 10  # of a compressed batch; beyond, a step in Python is nothing
    MOST_IN_A_ROW = 64  # batches that are unpacked without one
    MOST_BYTES_IN_A_ROW = 256 << 10  # of them, which the processor's cache has from their CRCs

FAULTS = (
    "",
    _layout.VARINT_CUT,
    _layout.VARINT_TOO_LONG,
    _layout.RECORD_LENGTH,
    _layout.RECORD_LEFTOVER,
    _layout.FIELD_LENGTH,
    _layout.OFFSET_ORDER,
    _layout.HEADER_COUNT,
    _layout.HEADER_KEY,
    _layout.TIMESTAMP_RANGE,
    _layout.MESSAGE_LENGTH,
    _layout.MESSAGE_MAGIC,
    _layout.MESSAGE_CRC,
    _layout.MESSAGE_ORDER,
    _layout.MESSAGE_NESTED,
)

cdef object kind_of(int fault):
    """The class of the error for one of FAULTS."""
    return TimestampOutOfRange if fault == TIMESTAMP_RANGE else CorruptRecords


def skim(block, size_t pos=0):
    """Read the headers alone; see `pyspark_kafkaproto.records.skim`."""
    cdef Block bytes_of = Block(block, pos, None)
    cdef Batch batch
    cdef int64_t next_offset = 0
    cdef int32_t leader_epoch = NO_LEADER_EPOCH
    cdef size_t batches = 0
    while bytes_of.read_header(pos, INT32_MAX, &batch):
        bytes_of.check_order(&batch, next_offset)
        bytes_of.check_reach(&batch)
        next_offset = batch.base_offset + batch.last_offset_delta + 1
        leader_epoch = NO_LEADER_EPOCH
        if batch.magic == MAGIC_V2:
            leader_epoch = int32_at(bytes_of.data + pos + LEADER_EPOCH_POS)
        pos = batch.stop
        batches += 1
    missing_bytes = 0
    if bytes_of.size - pos >= LOG_OVERHEAD:
        missing_bytes = LOG_OVERHEAD + <int64_t> int32_at(bytes_of.data + pos + 8)
    return Skimmed(
        next_offset if batches else None, pos, batches, missing_bytes, leader_epoch
    )


# --- what unpacks batches without a step in Python

cdef class Workbench:
    """A codec's context and memory, for one call of `decode` at a time."""

    cdef Unpacker unpacker

    def __cinit__(
        self, int codec, size_t create=0, size_t free_=0, size_t decompress=0, size_t reset=0
    ):
        self.unpacker.codec = codec
        self.unpacker.free = <void *> free_
        self.unpacker.decompress = <void *> decompress
        self.unpacker.reset = <void *> reset
        if not begin(&self.unpacker, <void *> create):
            raise MemoryError

    def __dealloc__(self):
        end(&self.unpacker)


# Those that nobody has, by codec; contexts hold tables worth keeping. No more than the decoders
# that there were at a time.
cdef dict benches = {}


cdef Workbench take_bench(int codec):
    """One for this codec; None where it has to be unpacked by steps in Python."""
    functions = () if codec == SNAPPY else _compression.native_functions(codec)
    if functions is None:
        return None
    spare = benches.setdefault(codec, [])
    return spare.pop() if spare else Workbench(codec, *functions)


# --- one call of `decode`

cdef Outcome read_rows(
    const uint8_t *data, size_t size, Batch *batch, Rows *rows, int64_t first, int64_t stop
) noexcept nogil:
    """Read all records of a batch, once there is room for as many rows."""
    cdef Outcome outcome
    if stop >= 0 and not reserve_rows(rows, batch.record_count, size):
        memset(&outcome, 0, sizeof(outcome))
        outcome.fault = NO_MEMORY
        return outcome
    return walk(data, size, batch, rows, first, stop)


cdef class Reading:
    """The columns as they grow, and how far reading came."""

    cdef Block block
    cdef Rows rows
    cdef object aborted
    cdef bint may_abort
    cdef bint check_crcs
    cdef int32_t limit
    cdef int64_t start
    cdef int64_t stop
    cdef int64_t next_offset
    cdef size_t pos
    cdef size_t begun_pos
    cdef size_t batches
    cdef size_t decompressed_bytes
    cdef size_t max_batch_bytes
    cdef Workbench bench  # from the first batch on for which there is one
    cdef int bench_codec  # of the last batch that wanted one

    def __dealloc__(self):
        free_rows(&self.rows)

    cdef int run(self, size_t chunk_bytes) except -1:
        """Read batches until the block, the range or the chunk ends."""
        cdef Batch batch
        cdef int64_t previous_end = 0
        cdef bint is_full
        while self.next_offset < self.stop:
            is_full = self.decompressed_bytes and self.decompressed_bytes >= chunk_bytes
            if not self.block.read_header(self.pos, self.limit, &batch):
                if is_full or not self.block.grow():
                    return 0
                continue
            self.block.check_order(&batch, previous_end)
            if is_full:
                return 0
            if batch.base_offset >= self.stop and not is_wrapper(&batch):
                self.next_offset = self.stop  # all that lies before the stop has been read
                return 0
            if not (batch.attributes & CODEC_MASK and self.read_in_a_row(&batch, chunk_bytes)):
                if unlikely(batch.magic != MAGIC_V2):
                    self.read_message(&batch, previous_end)
                else:
                    self.read(&batch)
                self.note_read(&batch)
            previous_end = batch.base_offset + batch.last_offset_delta + 1
        return 0

    cdef void note_read(self, Batch *batch) noexcept nogil:
        """All of `batch` was read."""
        cdef int64_t behind = batch.base_offset + batch.last_offset_delta + 1
        self.next_offset = min(max(self.next_offset, behind), self.stop)
        self.pos = batch.stop
        self.batches += 1

    cdef void note_content(self, size_t size) noexcept nogil:
        """A batch held `size` bytes of records."""
        self.decompressed_bytes += size
        self.max_batch_bytes = max(self.max_batch_bytes, size)

    cdef int read(self, Batch *batch) except -1:
        cdef Bytes body
        if self.check_crcs:
            self.block.check_crc(batch)
        self.block.check_reach(batch)
        if batch.base_offset + batch.last_offset_delta < self.next_offset and not (
            self.may_abort and batch.attributes & CONTROL
        ):
            return 0  # all of it lies before what was asked for; a marker counts all the same
        if self.may_abort and self.is_aborted(batch):
            return 0
        body = self.block.body(batch)
        if batch.attributes & CODEC_MASK and (body.size or batch.record_count):
            self.read_compressed(batch)
        else:
            self.read_records(batch, body.data, body.size)
        return 0

    cdef size_t read_in_a_row(self, Batch *batch, size_t chunk_bytes) except? -1:
        """Read compressed batches from `batch` on, which is the last one of them then; how many.

        Law: what is unpacked here is what `read` would give. What is not plain is left to that, and
        so is all damage, but for that of records.
        """
        cdef Batch batches[MOST_IN_A_ROW]
        cdef Outcome outcome
        cdef size_t found
        cdef size_t count
        if not self.is_plain(batch, batch.base_offset) or not self.has_bench(batch):
            return 0
        batches[0] = batch[0]
        found = self.find_in_a_row(batches, chunk_bytes)
        with nogil:
            count = self.unpack_in_a_row(batches, found, chunk_bytes, &outcome)
        if unlikely(outcome.fault or outcome.left):
            self.refuse(&batches[count], &outcome)
        if count:
            batch[0] = batches[count - 1]
        return count

    cdef bint has_bench(self, Batch *batch) except? -1:
        """Whether there is one for the codec of `batch`."""
        cdef int codec = batch.attributes & CODEC_MASK
        if codec != self.bench_codec:
            self.leave_bench()
            self.bench_codec = codec
            self.bench = take_bench(codec)
        return self.bench is not None

    cdef int leave_bench(self) except -1:
        """Leave it to others."""
        if self.bench is not None:
            benches[self.bench_codec].append(self.bench)
            self.bench = None
        return 0

    cdef bint is_plain(self, Batch *batch, int64_t previous_end) noexcept:
        """Whether nothing but its records has to be looked at, and all of them lie ahead."""
        return (
            batch.magic == MAGIC_V2
            and not self.may_abort
            and not batch.attributes & CONTROL
            and previous_end <= batch.base_offset < self.stop
            and 0 <= batch.last_offset_delta < INT64_MAX - batch.base_offset
            and batch.base_offset + batch.last_offset_delta >= self.next_offset
            and self.is_for_bench(batch)
        )

    cdef bint is_for_bench(self, Batch *batch) noexcept:
        """Whether what is compressed in it is as small and plain as headers can say."""
        cdef Bytes body = self.block.body(batch)
        return body.size > 0 and may_unpack(
            batch.attributes & CODEC_MASK, body.data, body.size
        )

    cdef Py_ssize_t unpack_one(self, Batch *batch) noexcept nogil:
        """How many bytes there are on the bench now; -1 where `compression.py` is to do it."""
        cdef Bytes body = self.block.body(batch)
        return unpack(&self.bench.unpacker, body.data, body.size, self.limit)

    cdef size_t find_in_a_row(self, Batch *batches, size_t chunk_bytes) except? -1:
        """How many of one codec and with the right CRC follow each other, as far as is useful."""
        cdef Batch *batch = batches
        cdef int codec = batch.attributes & CODEC_MASK
        cdef size_t most_bytes = MOST_BYTES_IN_A_ROW
        cdef size_t count = 0
        cdef int64_t stop
        if self.decompressed_bytes:  # what the chunk has no room for is read by the next one
            most_bytes = min(most_bytes, <size_t> (
                (<double> chunk_bytes - self.decompressed_bytes)
                * (batch.pos - self.begun_pos) / self.decompressed_bytes
            ))
        while not self.check_crcs or self.block.has_its_crc(batch):
            count += 1
            if count == MOST_IN_A_ROW or batch.stop - batches.pos >= most_bytes:
                break
            stop = batch.base_offset + batch.last_offset_delta + 1
            if not self.block.has_header(batch.stop, self.limit):
                break
            if not self.block.read_header(batch.stop, self.limit, batch + 1):
                break
            batch += 1
            if batch.attributes & CODEC_MASK != codec or not self.is_plain(batch, stop):
                break
        return count

    cdef size_t unpack_in_a_row(
        self, Batch *batches, size_t found, size_t chunk_bytes, Outcome *outcome
    ) noexcept nogil:
        """Read them, until the chunk is full; how many were. The one behind may have a fault."""
        cdef Batch *batch
        cdef Py_ssize_t size
        cdef size_t index
        memset(outcome, 0, sizeof(Outcome))
        for index in range(found):
            batch = batches + index
            if self.decompressed_bytes and self.decompressed_bytes >= chunk_bytes:
                return index
            size = self.unpack_one(batch)
            if size < 0 or not 0 <= batch.record_count <= size // MIN_RECORD_SIZE:
                return index
            outcome[0] = read_rows(
                self.bench.unpacker.scratch, size, batch, &self.rows, self.next_offset, self.stop
            )
            if unlikely(outcome.fault or outcome.left):
                return index
            self.note_content(size)
            self.note_read(batch)
        return found

    cdef int read_message(self, Batch *batch, int64_t previous_end) except -1:
        """A message of magic 0 or 1, or those that it wraps."""
        cdef MessageSet messages
        cdef Py_buffer content
        if self.check_crcs:
            self.block.check_message_crc(batch)
        self.block.check_reach(batch)
        if batch.base_offset < self.next_offset:
            return 0  # all of it lies before what was asked for
        messages.tables = NULL
        if not is_wrapper(batch):
            messages.data = self.block.data + batch.pos
            messages.size = batch.stop - batch.pos
            return self.read_messages(batch, &messages, previous_end)
        unwrapped = _legacy.unwrapped(
            self.block.header(batch), self.block.whole[batch.pos:batch.stop], self.limit
        )
        PyObject_GetBuffer(unwrapped, &content, PyBUF_SIMPLE)
        messages.data = <const uint8_t *> content.buf
        messages.size = content.len
        if self.check_crcs:
            messages.tables = &crc32_tables
        try:
            return self.read_messages(batch, &messages, previous_end)
        finally:
            PyBuffer_Release(&content)

    cdef int read_messages(
        self, Batch *batch, MessageSet *messages, int64_t previous_end
    ) except -1:
        cdef int64_t shift = 0
        if messages.size < NOGIL_BYTES:
            survey(messages, batch.magic)
        else:
            with nogil:
                survey(messages, batch.magic)
        if unlikely(messages.fault):
            self.refuse_message(batch, messages)
        if is_wrapper(batch):
            shift = _legacy.check_wrapper(
                self.block.header(batch),
                messages.count, messages.first, messages.last, previous_end,
            )
            batch.last_offset_delta = <int32_t> (messages.last + shift - batch.base_offset)
        self.note_content(messages.size)
        if messages.size < NOGIL_BYTES:
            append_messages(messages, batch, &self.rows, shift, self.next_offset, self.stop)
        else:
            with nogil:
                append_messages(messages, batch, &self.rows, shift, self.next_offset, self.stop)
        if unlikely(messages.fault):
            self.refuse_message(batch, messages)
        return 0

    cdef int refuse_message(self, Batch *batch, MessageSet *messages) except -1:
        if messages.fault == NO_MEMORY:
            raise MemoryError
        reason = f"message {messages.index}: {FAULTS[messages.fault]}"
        raise self.block.header(batch).corrupt(reason, kind_of(messages.fault))

    cdef bint is_aborted(self, Batch *batch) except -1:
        if batch.producer_id < 0:
            return False
        self.aborted.reach(batch.base_offset + batch.last_offset_delta)
        if batch.attributes & CONTROL or not batch.attributes & TRANSACTIONAL:
            return False
        return batch.producer_id in self.aborted

    cdef int read_compressed(self, Batch *batch) except -1:
        cdef Py_buffer content
        cdef Py_ssize_t size
        if self.may_abort and self.is_for_bench(batch) and self.has_bench(batch):  # in no row
            with nogil:
                size = self.unpack_one(batch)
            if size >= 0:
                return self.read_records(batch, self.bench.unpacker.scratch, size)
        try:
            decompressed = self.decompressed(batch)
        except _compression.DecompressionFailed as error:
            raise self.block.header(batch).not_decompressed(error) from error
        PyObject_GetBuffer(decompressed, &content, PyBUF_SIMPLE)
        try:
            self.read_records(batch, <const uint8_t *> content.buf, content.len)
        finally:
            PyBuffer_Release(&content)
        return 0

    cdef object decompressed(self, Batch *batch):
        """The records of a compressed batch; good until the next is decompressed."""
        compressed = self.block.whole[batch.pos + HEADER_SIZE:batch.stop]
        return _compression.decompress(batch.attributes & CODEC_MASK, compressed, self.limit)

    cdef int read_records(self, Batch *batch, const uint8_t *data, size_t size) except -1:
        cdef bint is_control = batch.attributes & CONTROL
        cdef int64_t stop = -1 if is_control else self.stop  # control records are never rows
        cdef Outcome outcome
        if unlikely(
            batch.record_count < 0 or <size_t> batch.record_count > size // MIN_RECORD_SIZE
        ):
            _batch.check_count(self.block.header(batch), size)
        self.note_content(size)
        if size < NOGIL_BYTES:
            outcome = read_rows(data, size, batch, &self.rows, self.next_offset, stop)
        else:
            with nogil:
                outcome = read_rows(data, size, batch, &self.rows, self.next_offset, stop)
        if unlikely(outcome.fault or outcome.left):
            self.refuse(batch, &outcome)
        if is_control and self.may_abort and batch.record_count:
            self.read_marker(batch, &outcome.first_key)
        if self.may_abort:
            self.may_abort = bool(self.aborted)
        return 0

    cdef int refuse(self, Batch *batch, Outcome *outcome) except -1:
        if outcome.fault == NO_MEMORY:
            raise MemoryError
        if outcome.fault:
            fault = FAULTS[outcome.fault]
            reason = f"record {outcome.index} of {batch.record_count}: {fault}"
        else:
            reason = f"{outcome.left} bytes follow its {batch.record_count} records"
        raise self.block.header(batch).corrupt(reason, kind_of(outcome.fault))

    cdef int read_marker(self, Batch *batch, Bytes *key) except -1:
        cdef object content = None
        if key.size >= 0:
            content = PyBytes_FromStringAndSize(<const char *> key.data, key.size)
        if _batch.is_abort_marker(self.block.header(batch), content):
            self.aborted.end(batch.producer_id)
        return 0

    cdef object result(self):
        cdef Rows *rows = &self.rows
        cdef int wanted = rows.wanted
        if not reserve_rows(rows, 0, 0):  # counts what is there
            raise MemoryError
        return Decoded(
            rows=rows.count,
            pos=self.pos,
            next_offset=self.next_offset,
            passed_over=max(0, self.next_offset - self.start) - <int64_t> rows.count,
            batches=self.batches,
            decompressed_bytes=self.decompressed_bytes,
            max_batch_bytes=self.max_batch_bytes,
            aborted=self.aborted,
            offsets=handed_over(&rows.offsets) if wanted & OFFSET else None,
            timestamps=handed_over(&rows.timestamps) if wanted & TIMESTAMP else None,
            timestamp_types=(
                handed_over(&rows.timestamp_types) if wanted & TIMESTAMP_TYPE else None
            ),
            key=binary_column(&rows.key, rows.count) if wanted & KEY else None,
            value=binary_column(&rows.value, rows.count) if wanted & VALUE else None,
            headers=headers_column(rows) if wanted & HEADERS else None,
        )


def decode(
    block, *, size_t pos=0, int64_t start, int64_t stop, int wanted, aborted=(),
    bint check_crcs=True, batch_limit_bytes=_layout.DEFAULT_BATCH_LIMIT_BYTES,
    chunk_bytes=_layout.DEFAULT_CHUNK_BYTES, arrived=None, more=None, source=None,
):
    """Decode whole batches; see `pyspark_kafkaproto.records.decode`."""
    cdef Reading reading = Reading.__new__(Reading)
    reading.block = Block(block, pos, arrived, more, source)
    reading.aborted = AbortedTransactions.copy_of(aborted)
    reading.may_abort = bool(reading.aborted)
    reading.check_crcs = check_crcs
    reading.limit = min(batch_limit_bytes, INT32_MAX)
    reading.start = reading.next_offset = start
    reading.stop = stop
    reading.pos = reading.begun_pos = pos
    reading.rows.wanted = wanted
    take_kept_rows(&reading.rows)
    # Arrow's offsets are 32 bits: whatever fits a chunk fits a column.
    try:
        reading.run(min(chunk_bytes, INT32_MAX - reading.limit))
    finally:
        reading.leave_bench()
    return reading.result()
