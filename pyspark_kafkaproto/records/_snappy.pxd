"""Snappy, bare or in the stream of snappy-java: the codec whose package shows no functions to call.

Law: what is given here is what `compression.py` gives of the same bytes. All that is damaged, or
has no room, is refused, for that to tell of. Behind the room SLACK bytes more may be written.
Formats: format_description.txt of the library; SnappyOutputStream of snappy-java.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy

from pyspark_kafkaproto.records._batch cimport uint32_at

cdef enum:
    SLACK = 64  # the longest copy, made of whole blocks
    SHORT = 32  # most literals; copied so, whatever their size
    STREAM_MAGIC = 8
    STREAM_HEADER = 16  # magic, own version, least version
    BLOCK_SIZE = 4
    LAST_SHIFT = 28  # of the fifth byte of a varint
    WIDEST = 4  # bytes of a size, or of a distance
    LONG_LITERAL = 60  # from here on the size of a literal stands behind its tag


cdef struct Snapped:
    const uint8_t *at
    const uint8_t *end
    const uint8_t *begin  # of what was unpacked
    uint8_t *out
    const uint8_t *stop  # behind what the block declares


cdef inline size_t little_number(const uint8_t *at, size_t size) noexcept nogil:
    cdef size_t number = 0
    cdef size_t index
    for index in range(size):
        number |= <size_t> at[index] << 8 * index
    return number


cdef inline bint take_declared(Snapped *snapped, size_t *declared) noexcept nogil:
    """The size that the block says it unpacks to."""
    cdef int shift
    declared[0] = 0
    for shift in range(0, LAST_SHIFT + 1, 7):
        if snapped.at == snapped.end:
            return False
        declared[0] |= <size_t> (snapped.at[0] & 0x7F) << shift
        snapped.at += 1
        if snapped.at[-1] < 0x80:
            return True
    return False


cdef inline bint take_literal(Snapped *snapped, size_t size) noexcept nogil:
    """Copy bytes that stand there; `size` is one less, or tells where it stands."""
    cdef size_t left = snapped.end - snapped.at
    cdef size_t room = snapped.stop - snapped.out
    cdef size_t width
    if size < SHORT <= left and size < room:
        memcpy(snapped.out, snapped.at, SHORT)
        snapped.at += size + 1
        snapped.out += size + 1
        return True
    if size >= LONG_LITERAL:
        width = size - LONG_LITERAL + 1
        if left < WIDEST:  # the package's decoder looks at all of them, however many it wants
            return False
        size = little_number(snapped.at, width)
        snapped.at += width
        left -= width
    if size >= left or size >= room:
        return False
    if size < SLACK <= left:
        memcpy(snapped.out, snapped.at, SLACK)
    else:
        memcpy(snapped.out, snapped.at, size + 1)
    snapped.at += size + 1
    snapped.out += size + 1
    return True


cdef inline bint repeat(Snapped *snapped, size_t distance, size_t size) noexcept nogil:
    """Copy what stands so far before the end, and may reach beyond it; no more than SLACK bytes."""
    cdef uint8_t *out = snapped.out
    cdef const uint8_t *source
    if (
        not 0 < distance <= <size_t> (out - snapped.begin)
        or size > <size_t> (snapped.stop - out)
    ):
        return False
    source = out - distance
    snapped.out += size
    if distance >= 16:
        memcpy(out, source, 16)
        if size > 16:
            memcpy(out + 16, source + 16, 16)
        if size > 32:
            memcpy(out + 32, source + 32, 16)
            memcpy(out + 48, source + 48, 16)
    elif distance >= 8:
        while out < snapped.out:
            memcpy(out, source, 8)
            out += 8
            source += 8
    else:
        while out < snapped.out:
            out[0] = source[0]
            out += 1
            source += 1
    return True


cdef inline bint take_copy(Snapped *snapped, size_t tag) noexcept nogil:
    """Copy from what was unpacked before.

    Near and far ones come in no order that a processor could guess, so there is no branch for them.
    """
    cdef size_t kind = tag & 3
    cdef size_t left = snapped.end - snapped.at
    cdef size_t near = kind & 1
    cdef size_t distance
    if left < 2 or kind == 3:
        return take_odd_copy(snapped, tag)
    distance = snapped.at[0] | snapped.at[1] << 8
    distance = distance & 0xFFFF >> 8 * near | (tag >> 5) * near << 8
    snapped.at += kind
    return repeat(snapped, distance, (tag >> 2 & 0x3F >> 3 * near) + 1 + 3 * near)


cdef inline bint take_odd_copy(Snapped *snapped, size_t tag) noexcept nogil:
    """One whose distance has four bytes, or a near one at the very end."""
    cdef size_t kind = tag & 3
    cdef size_t width = WIDEST if kind == 3 else kind
    cdef size_t distance
    if <size_t> (snapped.end - snapped.at) < width:
        return False
    distance = little_number(snapped.at, width)
    snapped.at += width
    if kind == 1:
        return repeat(snapped, distance | tag >> 5 << 8, (tag >> 2 & 7) + 4)
    return repeat(snapped, distance, (tag >> 2) + 1)


cdef inline Py_ssize_t unsnap_block(
    const uint8_t *data, size_t size, uint8_t *target, size_t room
) noexcept nogil:
    """How many bytes one block holds, in `target` now; -1 if it is not sound, or has no room."""
    cdef Snapped snapped
    cdef size_t declared
    cdef size_t tag
    snapped.at = data
    snapped.end = data + size
    if not take_declared(&snapped, &declared) or declared > room:
        return -1
    snapped.begin = snapped.out = target
    snapped.stop = target + declared
    while snapped.at < snapped.end:
        tag = snapped.at[0]
        snapped.at += 1
        if not tag & 3:
            if not take_literal(&snapped, tag >> 2):
                return -1
            if snapped.at == snapped.end or not snapped.at[0] & 3:
                continue
            tag = snapped.at[0]  # nearly always: compressors make one literal of two
            snapped.at += 1
        if not take_copy(&snapped, tag):
            return -1
    return <Py_ssize_t> declared if snapped.out == snapped.stop else -1


cdef inline bint is_stream(const uint8_t *data, size_t size) noexcept nogil:
    """Whether snappy-java's header stands here."""
    return size >= STREAM_HEADER and not memcmp(data, b"\x82SNAPPY\x00", STREAM_MAGIC)


cdef struct Blocks:
    const uint8_t *at
    const uint8_t *end
    bint is_bare  # one block, with nothing around it


cdef inline Blocks blocks_of(const uint8_t *data, size_t size) noexcept nogil:
    cdef Blocks blocks
    blocks.at = data
    blocks.end = data + size
    blocks.is_bare = not is_stream(data, size)
    return blocks


cdef inline size_t take_block(Blocks *blocks) noexcept nogil:
    """Go behind the next block; its size, or 0 where there is none that is whole."""
    cdef size_t size = blocks.end - blocks.at
    if not blocks.is_bare:
        while is_stream(blocks.at, blocks.end - blocks.at):  # streams may follow each other
            blocks.at += STREAM_HEADER
        if blocks.end - blocks.at < BLOCK_SIZE:
            return 0
        size = uint32_at(blocks.at)
        blocks.at += BLOCK_SIZE
        if size > <size_t> (blocks.end - blocks.at):
            return 0
    blocks.at += size
    return size


cdef inline size_t declared_size(const uint8_t *data, size_t size) noexcept nogil:
    """What all blocks together say that they unpack to, up to the first one that is not sound."""
    cdef Blocks blocks = blocks_of(data, size)
    cdef Snapped snapped
    cdef size_t declared
    cdef size_t total = 0
    while blocks.at < blocks.end:
        size = take_block(&blocks)
        snapped.at = blocks.at - size
        snapped.end = blocks.at
        if not take_declared(&snapped, &declared):
            break
        total += declared
    return total


cdef inline Py_ssize_t unsnap(
    const uint8_t *data, size_t size, uint8_t *target, size_t room
) noexcept nogil:
    """How many bytes `data` holds, in `target` now; -1 as above."""
    cdef Blocks blocks = blocks_of(data, size)
    cdef size_t done = 0
    cdef Py_ssize_t unpacked
    while blocks.at < blocks.end:
        size = take_block(&blocks)
        unpacked = unsnap_block(blocks.at - size, size, target + done, room - done)
        if unpacked < 0:
            return -1
        done += unpacked
    return done
