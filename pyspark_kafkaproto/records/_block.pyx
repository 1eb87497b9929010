# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""A block of batches: what of its bytes is there, and what the header of a batch can say of it.

Header errors are raised by `batch.py`, whichever implementation found them, so all say the same.
Nothing is unpacked here, and no record is looked at. Format: `layout.py`.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint32_t

from pyspark_kafkaproto.records._batch cimport (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POS,
    MAGIC_V2,
    Batch,
    int32_at,
    int64_at,
    uint32_at,
)
from pyspark_kafkaproto.records._crc32 cimport crc32, fill_crc32_tables
from pyspark_kafkaproto.records._crc32c cimport fold_crc32c, may_fold_crc32c
from pyspark_kafkaproto.records._cursor cimport NOGIL_BYTES, Bytes, unlikely
from pyspark_kafkaproto.records._message cimport read_message_header

from pyspark_kafkaproto.records import batch as _batch
from pyspark_kafkaproto.records import compression as _compression

cdef enum:
    ATTRIBUTES_POS = 21
    MIN_LENGTH_V2 = 49

cdef object crc32c = _compression.crc32c
folds = bool(may_fold_crc32c())  # CRCs; where it cannot, or is told not to, the package does
fill_crc32_tables(&crc32_tables)


cdef class Source:
    """Nothing more comes without a step in Python; see `net/_inflow.pyx` for one that has more."""

    cdef size_t reach(self, size_t have) noexcept:
        return have


cdef class Span:
    """A part of a block, for one call at a time: the next one moves it on."""

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void *> self.data, self.size, 1, flags)


cdef class Block:
    """The bytes of one or more batches, held while they are read, and how many are there."""

    def __cinit__(self, block, pos, arrived, more=None, Source source=None):
        self.whole = _batch.byte_view(block, pos)
        PyObject_GetBuffer(self.whole, &self.buffer, PyBUF_SIMPLE)
        self.data = <const uint8_t *> self.buffer.buf
        self.more = more
        self.source = source
        self.folds = folds
        self.summed = Span.__new__(Span)
        self.set_arrived(self.buffer.len if arrived is None else arrived, pos)

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)

    cdef int set_arrived(self, arrived, before) except -1:
        self.size = len(_batch.arrived_view(self.whole, arrived, before))
        return 0

    cdef bint grow(self) except -1:
        """Wait for more of it; False when no more will come."""
        cdef size_t before = self.size
        cdef size_t there = before
        if self.more is None:
            return False
        if self.source is not None:
            there = self.source.reach(before)
        if there > before:  # what stands behind the block has perhaps come, too
            self.size = min(there, <size_t> self.buffer.len)
        else:
            self.set_arrived(self.more(), before)
        return self.size > before

    cdef bint read_header(self, size_t pos, int32_t limit, Batch *batch) except? -1:
        """The header of the batch at `pos`; False when the block's end cuts the batch."""
        cdef const uint8_t *at = self.data + pos
        cdef size_t left = self.size - pos
        cdef int32_t length
        if left < LOG_OVERHEAD:
            return False
        batch.pos = pos
        if not self.has_header(pos, limit):
            if read_message_header(at, left, limit, batch):
                return True
            # Raises unless the batch is only cut.
            _batch.read_header(self.whole[:self.size], pos, limit)
            return False
        length = int32_at(at + 8)
        if left < LOG_OVERHEAD + <size_t> length:
            return False
        batch.stop = pos + LOG_OVERHEAD + length
        batch.magic = MAGIC_V2
        batch.base_offset = int64_at(at)
        batch.crc = uint32_at(at + 17)
        batch.attributes = <int32_t> (at[21] << 8 | at[22])
        batch.last_offset_delta = int32_at(at + 23)
        batch.base_timestamp = int64_at(at + 27)
        batch.max_timestamp = int64_at(at + 35)
        batch.producer_id = int64_at(at + 43)
        batch.record_count = int32_at(at + 57)
        return True

    cdef bint has_header(self, size_t pos, int32_t limit) noexcept:
        """Whether at `pos` is the header of a record batch, of a length that can be."""
        cdef const uint8_t *at = self.data + pos
        cdef int32_t length
        if self.size - pos < HEADER_SIZE or at[MAGIC_POS] != MAGIC_V2:
            return False
        length = int32_at(at + 8)
        return length >= MIN_LENGTH_V2 and length - MIN_LENGTH_V2 <= limit

    cdef Bytes body(self, Batch *batch) noexcept nogil:
        """What stands behind the header of a record batch."""
        cdef Bytes body
        body.data = self.data + batch.pos + HEADER_SIZE
        body.size = <int32_t> (batch.stop - batch.pos - HEADER_SIZE)
        return body

    cdef object header(self, Batch *batch):
        """The header as the object that raises errors about it."""
        return _batch.read_header(self.whole[:self.size], batch.pos, INT32_MAX)

    cdef int check_order(self, Batch *batch, int64_t previous_end) except -1:
        if unlikely(batch.base_offset < previous_end):
            _batch.check_order(self.header(batch), previous_end)
        return 0

    cdef int check_reach(self, Batch *batch) except -1:
        if unlikely(
            batch.last_offset_delta < 0
            or batch.base_offset >= INT64_MAX - batch.last_offset_delta
        ):
            _batch.check_reach(self.header(batch))
        return 0

    cdef int check_message_crc(self, Batch *batch) except -1:
        cdef const uint8_t *summed = self.data + batch.pos + MAGIC_POS
        if unlikely(crc32(&crc32_tables, summed, self.data + batch.stop) != batch.crc):
            _batch.check_crc(self.header(batch), self.whole[batch.pos:batch.stop])
        return 0

    cdef bint has_its_crc(self, Batch *batch) except? -1:
        """Batches come in their order, and some of them again."""
        if batch.stop > self.sound_to:
            if self.crc_of(batch) != batch.crc:
                return False
            self.sound_to = batch.stop
        return True

    cdef uint32_t crc_of(self, Batch *batch) except? 0:
        """What it has to be, by the bytes."""
        cdef const uint8_t *summed = self.data + batch.pos + ATTRIBUTES_POS
        cdef size_t size = batch.stop - batch.pos - ATTRIBUTES_POS
        cdef uint32_t crc
        if self.folds:
            if size < NOGIL_BYTES:
                return fold_crc32c(summed, size)
            with nogil:
                crc = fold_crc32c(summed, size)
            return crc
        self.summed.data = summed
        self.summed.size = size
        return crc32c(self.summed)

    cdef int check_crc(self, Batch *batch) except -1:
        if unlikely(not self.has_its_crc(batch)):
            _batch.check_crc(self.header(batch), self.whole[batch.pos:batch.stop])
        return 0
