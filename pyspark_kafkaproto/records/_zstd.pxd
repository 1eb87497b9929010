"""Where zstd frames end, and which of them any reader takes.

Only blocks' headers are looked at. `compression.py` is the same in plain Python, and says what is
wrong where this says no. Format: RFC 8878, 3.1.
"""

from libc.stdint cimport uint8_t, uint32_t

from pyspark_kafkaproto.records._crc32 cimport little_uint32_at

cdef enum:
    SKIPPABLE = 0x184D2A5  # the magic number of frames without content, its last digit off
    SKIPPABLE_HEADER = 8
    SMALLEST_FRAME = 9  # magic, descriptor, window or size, one block's header
    BLOCK_HEADER = 3
    RLE = 1  # the type of a block that is one byte, repeated
    CHECKSUM = 4
    FRAME = 0xFD2FB528
    LARGE_WINDOW = 17  # the exponent of 128 MiB, the most that the library allows by itself


cdef inline bint is_plain(const uint8_t *data) noexcept nogil:
    """Whether a frame with content begins here, and needs no more memory than readers allow."""
    cdef bint is_single = data[4] >> 5 & 1  # its window is its content
    return little_uint32_at(data) == FRAME and (is_single or data[5] >> 3 < LARGE_WINDOW)


cdef inline size_t header_size(uint8_t flags) noexcept nogil:
    """Of a frame, magic included."""
    cdef size_t is_single = flags >> 5 & 1  # no window size, and a content size of a byte at least
    cdef size_t size = 6 - is_single
    if flags & 3:
        size += 1 << (flags & 3) - 1
    if flags >> 6:
        return size + (1 << (flags >> 6))
    return size + is_single


cdef inline size_t whole_frames(const uint8_t *data, size_t size) noexcept nogil:
    """How many there are; 0 where the last does not end where the data does."""
    cdef size_t pos = 0
    cdef size_t count = 0
    cdef uint32_t block
    cdef uint8_t flags
    while pos < size:
        if size - pos < SMALLEST_FRAME:
            return 0
        count += 1
        if little_uint32_at(data + pos) >> 4 == SKIPPABLE:
            pos += SKIPPABLE_HEADER + <size_t> little_uint32_at(data + pos + 4)
            continue
        flags = data[pos + 4]
        pos += header_size(flags)
        block = 0
        while not block & 1:
            if pos + BLOCK_HEADER > size:
                return 0
            block = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
            pos += BLOCK_HEADER + (1 if block >> 1 & 3 == RLE else block >> 3)
        if flags & 4:
            pos += CHECKSUM
    return count if pos == size else 0
