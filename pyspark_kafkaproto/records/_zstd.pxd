"""Which zstd frames any reader takes, however it reads them.

Only headers are looked at. Format: RFC 8878, 3.1.
"""

from libc.stdint cimport uint8_t, uint32_t

from pyspark_kafkaproto.records._crc32 cimport little_uint32_at

cdef enum:
    SMALLEST_FRAME = 9  # magic, descriptor, window or size, one block's header
    BLOCK_HEADER = 3
    RLE = 1  # the type of a block that is one byte, repeated
    EMPTY_LAST = 1  # the header of a last block, stored, of no bytes
    CHECKSUM = 4
    FRAME = 0xFD2FB528
    LARGE_WINDOW = 17  # the exponent of 128 MiB, the most that the library allows by itself
    LARGEST_BLOCK = 128 << 10  # decompressed
    BLOCK_WINDOW = 7  # the exponent of a window of as much


cdef inline size_t header_size(uint8_t flags) noexcept nogil:
    """Of a frame, magic included."""
    cdef size_t is_single = flags >> 5 & 1  # no window size, and a content size of a byte at least
    cdef size_t size = 6 - is_single
    if flags & 3:
        size += 1 << (flags & 3) - 1
    if flags >> 6:
        return size + (1 << (flags >> 6))
    return size + is_single


cdef inline uint32_t block_header(const uint8_t *behind) noexcept nogil:
    return behind[-3] | behind[-2] << 8 | behind[-1] << 16


cdef inline bint is_one_block(const uint8_t *data, size_t size) noexcept nogil:
    """Whether this is a frame of one block, which needs no more memory than readers allow.

    Java's producer has an empty last one behind it. Of several blocks the library does not look at
    each one's size if it reads all at once.
    """
    cdef size_t pos
    cdef uint32_t block
    if size < SMALLEST_FRAME or little_uint32_at(data) != FRAME:
        return False
    if not data[4] >> 5 & 1 and data[5] >> 3 >= LARGE_WINDOW:
        return False  # of a single segment the window is the content
    pos = header_size(data[4]) + BLOCK_HEADER
    if pos > size:
        return False
    block = block_header(data + pos)
    pos += 1 if block >> 1 & 3 == RLE else block >> 3
    if not block & 1:
        pos += BLOCK_HEADER
        if pos > size or block_header(data + pos) != EMPTY_LAST:
            return False
    if data[4] & 4:
        pos += CHECKSUM
    return pos == size


cdef inline size_t block_room(const uint8_t *data) noexcept nogil:
    """The most that a block of such a frame may hold: its window, or the largest."""
    cdef uint8_t window = data[5]
    if data[4] >> 5 & 1 or window >> 3 >= BLOCK_WINDOW:
        return LARGEST_BLOCK
    return <size_t> (8 + (window & 7)) << 7 + (window >> 3)  # in eighths; the least is 1 KiB
