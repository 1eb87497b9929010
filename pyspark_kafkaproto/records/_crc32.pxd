"""CRC-32 (zlib's) of messages older than record batches and of keys, eight bytes at a step.

A call into Python per message inside a wrapper would cost more than all else that is done to it.
Method: "Slicing-by-8", Kounavis and Berry, 2005.
"""

from libc.stdint cimport uint8_t, uint32_t

cdef enum:
    SLICES = 8

cdef struct Crc32Tables:
    uint32_t of[SLICES][256]


cdef inline void fill_crc32_tables(Crc32Tables *tables) noexcept nogil:
    cdef uint32_t crc
    cdef uint32_t polynomial = 0xEDB88320U
    cdef int byte, _bit, index
    for byte in range(256):
        crc = byte
        for _bit in range(8):
            crc = (crc >> 1) ^ (polynomial & (0 - (crc & 1)))
        tables.of[0][byte] = crc
    for index in range(1, SLICES):
        for byte in range(256):
            crc = tables.of[index - 1][byte]
            tables.of[index][byte] = (crc >> 8) ^ tables.of[0][crc & 0xFF]


cdef inline uint32_t little_uint32_at(const uint8_t *at) noexcept nogil:
    return (
        <uint32_t> at[3] << 24 | <uint32_t> at[2] << 16 | <uint32_t> at[1] << 8 | <uint32_t> at[0]
    )


cdef inline uint32_t crc32(
    const Crc32Tables *tables, const uint8_t *at, const uint8_t *end
) noexcept nogil:
    cdef uint32_t crc = 0xFFFFFFFFU
    cdef uint32_t high
    while end - at >= SLICES:
        crc ^= little_uint32_at(at)
        high = little_uint32_at(at + 4)
        crc = (
            tables.of[7][crc & 0xFF]
            ^ tables.of[6][crc >> 8 & 0xFF]
            ^ tables.of[5][crc >> 16 & 0xFF]
            ^ tables.of[4][crc >> 24]
            ^ tables.of[3][high & 0xFF]
            ^ tables.of[2][high >> 8 & 0xFF]
            ^ tables.of[1][high >> 16 & 0xFF]
            ^ tables.of[0][high >> 24]
        )
        at += SLICES
    while at < end:
        crc = (crc >> 8) ^ tables.of[0][(crc ^ at[0]) & 0xFF]
        at += 1
    return ~crc
