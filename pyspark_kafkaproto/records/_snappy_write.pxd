"""Snappy in the stream of snappy-java, for batches to write.

Law: every reader of the format makes the same bytes of it again, and no more than `stream_room` is
written. What repeats is looked for by five bytes, as LZ4 does, where the library goes by four: that
leaves out repetitions that cost time, of whoever reads as well, and save nearly nothing.
Formats: format_description.txt of the library; SnappyOutputStream of snappy-java.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pyspark_kafkaproto.records._crc32 cimport little_uint32_at

cdef extern from *:
    int __builtin_ctzll(unsigned long long bits) nogil

cdef enum:
    STREAM_HEADER = 16  # magic, own version, least version
    BLOCK_SIZE = 4
    BLOCK_BYTES = 32 << 10  # what snappy-java cuts the input into
    BLOCK_ROOM = BLOCK_BYTES + BLOCK_BYTES // 6 + 32  # more than a block can become
    MARGIN = 16  # at the end of a block: eight bytes are looked at wherever something is looked for
    SHORT = 16  # many literals; copied so, whatever their size
    PLACE_BITS = 13  # of a hash
    MOST_PLACES = 1 << PLACE_BITS
    FEWEST_PLACES = 1 << 8
    LEAST_COPY = 4
    LARGEST_COPY = 64
    LARGEST_NEAR_COPY = 11
    NEAR = 2048
    PATIENCE = 5  # after 2 to the power of so many looks in vain, each other byte is looked at; …


cdef struct Packing:
    const uint8_t *data
    size_t size
    size_t last  # place at which something may be looked for
    size_t done  # up to this place all is written
    size_t at
    size_t match  # a place before `at` that has the same LEAST_COPY bytes
    uint8_t *out
    uint16_t *places  # where bytes were seen, by their hash
    int shift


cdef inline size_t stream_room(size_t size) noexcept nogil:
    """The bytes to have ready for the stream of so many."""
    return STREAM_HEADER + (size // BLOCK_BYTES + 1) * (BLOCK_SIZE + BLOCK_ROOM)


cdef inline uint64_t eight_bytes(const uint8_t *at) noexcept nogil:
    return little_uint32_at(at) | <uint64_t> little_uint32_at(at + 4) << 32


cdef inline size_t seen(Packing *packing, size_t at, uint64_t eight) noexcept nogil:
    """Where five bytes as at `at` were seen last, if at all; they are seen at `at` now."""
    cdef size_t slot = (eight << 24) * 0x9E3779B185EBCA87U >> packing.shift
    cdef size_t place = packing.places[slot]
    packing.places[slot] = <uint16_t> at
    return place


cdef inline bint find(Packing *packing) noexcept nogil:
    """Go to the next place whose bytes stood somewhere before, in steps that grow."""
    cdef size_t steps = 1 << PATIENCE
    cdef uint64_t eight
    while packing.at <= packing.last:
        eight = eight_bytes(packing.data + packing.at)
        packing.match = seen(packing, packing.at, eight)
        if little_uint32_at(packing.data + packing.match) == <uint32_t> eight:
            return True
        packing.at += steps >> PATIENCE
        steps += 1
    return False


cdef inline void go_back(Packing *packing) noexcept nogil:
    """To where the bytes that are the same begin."""
    while (
        packing.at > packing.done
        and packing.match
        and packing.data[packing.at - 1] == packing.data[packing.match - 1]
    ):
        packing.at -= 1
        packing.match -= 1


cdef inline size_t end_of_same(const Packing *packing) noexcept nogil:
    """The place up to which the bytes from `at` on are those from `match` on."""
    cdef size_t at = packing.at + LEAST_COPY
    cdef size_t match = packing.match + LEAST_COPY
    cdef uint64_t difference
    while at + 8 <= packing.size:
        difference = eight_bytes(packing.data + at) ^ eight_bytes(packing.data + match)
        if difference:
            return at + (__builtin_ctzll(difference) >> 3)
        at += 8
        match += 8
    while at < packing.size and packing.data[at] == packing.data[match]:
        at += 1
        match += 1
    return at


cdef inline void put_size(Packing *packing) noexcept nogil:
    cdef size_t size = packing.size
    while size >= 0x80:
        packing.out[0] = <uint8_t> (size | 0x80)
        packing.out += 1
        size >>= 7
    packing.out[0] = <uint8_t> size
    packing.out += 1


cdef inline void put_literal(Packing *packing, size_t end) noexcept nogil:
    """What is not written yet, up to `end`, as it is."""
    cdef const uint8_t *source = packing.data + packing.done
    cdef size_t size = end - packing.done
    if size == 0:
        return
    if size <= 60:
        packing.out[0] = <uint8_t> (size - 1 << 2)
        packing.out += 1
    elif size <= 256:
        packing.out[0] = 60 << 2
        packing.out[1] = <uint8_t> (size - 1)
        packing.out += 2
    else:
        packing.out[0] = 61 << 2
        packing.out[1] = <uint8_t> (size - 1)
        packing.out[2] = <uint8_t> (size - 1 >> 8)
        packing.out += 3
    if size <= SHORT <= packing.size - packing.done:
        memcpy(packing.out, source, SHORT)
    else:
        memcpy(packing.out, source, size)
    packing.out += size
    packing.done = end


cdef inline void put_far_copy(Packing *packing, size_t distance, size_t size) noexcept nogil:
    packing.out[0] = <uint8_t> (size - 1 << 2 | 2)
    packing.out[1] = <uint8_t> distance
    packing.out[2] = <uint8_t> (distance >> 8)
    packing.out += 3


cdef inline void put_copy(Packing *packing, size_t end) noexcept nogil:
    """What is the same from `at` up to `end`; no part of it is shorter than LEAST_COPY."""
    cdef size_t distance = packing.at - packing.match
    cdef size_t size = end - packing.at
    while size >= LARGEST_COPY + LEAST_COPY:
        put_far_copy(packing, distance, LARGEST_COPY)
        size -= LARGEST_COPY
    if size > LARGEST_COPY:
        put_far_copy(packing, distance, LARGEST_COPY - LEAST_COPY)
        size -= LARGEST_COPY - LEAST_COPY
    if size <= LARGEST_NEAR_COPY and distance < NEAR:
        packing.out[0] = <uint8_t> (1 | size - LEAST_COPY << 2 | distance >> 8 << 5)
        packing.out[1] = <uint8_t> distance
        packing.out += 2
    else:
        put_far_copy(packing, distance, size)
    packing.at = packing.done = end


cdef inline bint goes_on(Packing *packing) noexcept nogil:
    """Whether what follows a copy stood somewhere before, too."""
    cdef uint64_t eight
    seen(packing, packing.at - 2, eight_bytes(packing.data + packing.at - 2))
    eight = eight_bytes(packing.data + packing.at)
    packing.match = seen(packing, packing.at, eight)
    return little_uint32_at(packing.data + packing.match) == <uint32_t> eight


cdef inline void put_repetitions(Packing *packing) noexcept nogil:
    """All but what follows the last repetition."""
    while find(packing):
        go_back(packing)
        put_literal(packing, packing.at)
        put_copy(packing, end_of_same(packing))
        while packing.at <= packing.last and goes_on(packing):
            put_copy(packing, end_of_same(packing))
        packing.at += 1


cdef inline void forget_places(Packing *packing) noexcept nogil:
    """No more of them than there are bytes: a small batch is not to clear a large table."""
    cdef size_t count = MOST_PLACES
    packing.shift = 64 - PLACE_BITS
    while count > FEWEST_PLACES and count > packing.size:
        count >>= 1
        packing.shift += 1
    memset(packing.places, 0, count * sizeof(uint16_t))


cdef inline uint8_t *snap_block(
    const uint8_t *data, size_t size, uint8_t *out, uint16_t *places
) noexcept nogil:
    """One block of at most BLOCK_BYTES, at least one; where it ends."""
    cdef Packing packing
    packing.data = data
    packing.size = size
    packing.out = out
    packing.places = places
    packing.done = 0
    packing.at = 1  # nothing stands before the first byte, whose place every hash begins with
    put_size(&packing)
    if size > MARGIN:
        packing.last = size - MARGIN
        forget_places(&packing)
        put_repetitions(&packing)
    put_literal(&packing, size)
    return packing.out


cdef inline size_t snap(
    const uint8_t *data, size_t size, uint8_t *target, uint16_t *places
) noexcept nogil:
    """The size of the stream that `target` has then, which has to have its room."""
    cdef uint8_t *out = target + STREAM_HEADER
    cdef uint8_t *block
    cdef size_t taken = 0
    cdef size_t part
    cdef size_t packed
    memcpy(target, b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01", STREAM_HEADER)
    while taken < size:
        part = min(size - taken, <size_t> BLOCK_BYTES)
        block = out + BLOCK_SIZE
        out = snap_block(data + taken, part, block, places)
        packed = out - block
        block[-4] = <uint8_t> (packed >> 24)
        block[-3] = <uint8_t> (packed >> 16)
        block[-2] = <uint8_t> (packed >> 8)
        block[-1] = <uint8_t> packed
        taken += part
    return out - target
