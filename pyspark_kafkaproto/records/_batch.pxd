"""The fields of a batch's header that matter here; `batch.py` has all. Format: `layout.py`."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    LOG_OVERHEAD = 12
    MAGIC_POS = 16
    HEADER_SIZE = 61
    MAGIC_V2 = 2
    CODEC_MASK = 0x07
    LOG_APPEND_TIME = 0x08

cdef struct Batch:
    size_t pos
    size_t stop
    int32_t magic
    int64_t base_offset
    uint32_t crc
    int32_t attributes
    int32_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int32_t record_count


cdef inline bint is_wrapper(Batch *batch) noexcept nogil:
    """Whether it is a message with others inside, which have offsets up to its own."""
    return batch.magic != MAGIC_V2 and batch.attributes & CODEC_MASK


cdef inline uint32_t uint32_at(const uint8_t *at) noexcept nogil:
    return (
        <uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | <uint32_t> at[3]
    )


cdef inline int32_t int32_at(const uint8_t *at) noexcept nogil:
    return <int32_t> uint32_at(at)


cdef inline int64_t int64_at(const uint8_t *at) noexcept nogil:
    return <int64_t> (<uint64_t> uint32_at(at) << 32 | uint32_at(at + 4))
