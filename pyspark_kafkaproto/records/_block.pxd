"""What the decoder sees of a block of batches, and other rooms of where more of it comes from."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pyspark_kafkaproto.records._batch cimport Batch
from pyspark_kafkaproto.records._crc32 cimport Crc32Tables
from pyspark_kafkaproto.records._cursor cimport Bytes

cdef Crc32Tables crc32_tables  # of messages; record batches have crc32c


cdef class Source:
    """Where more of a block comes from without a step in Python."""

    cdef size_t reach(self, size_t have) noexcept


cdef class Span:
    cdef const uint8_t *data
    cdef Py_ssize_t size


cdef class Block:
    cdef object whole
    cdef object more
    cdef Source source
    cdef const uint8_t *data
    cdef size_t size  # of what is there
    cdef Py_buffer buffer
    cdef bint folds
    cdef Span summed  # what the package makes a CRC of: a memoryview for each batch takes longer
    cdef size_t sound_to  # behind the last batch with its CRC

    cdef int set_arrived(self, arrived, before) except -1
    cdef bint grow(self) except -1
    cdef bint read_header(self, size_t pos, int32_t limit, Batch *batch) except? -1
    cdef bint has_header(self, size_t pos, int32_t limit) noexcept
    cdef Bytes body(self, Batch *batch) noexcept nogil
    cdef object header(self, Batch *batch)
    cdef int check_order(self, Batch *batch, int64_t previous_end) except -1
    cdef int check_reach(self, Batch *batch) except -1
    cdef int check_message_crc(self, Batch *batch) except -1
    cdef bint has_its_crc(self, Batch *batch) except? -1
    cdef uint32_t crc_of(self, Batch *batch) except? 0
    cdef int check_crc(self, Batch *batch) except -1
