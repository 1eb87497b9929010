"""What moves over bytes from the wire, whatever they are, and one record read with it.

Only `take` functions move the cursor, each after a look at what is left. The first fault sticks and
leaves nothing to read, so whoever takes several values looks at the fault once, at the end.
Format: `layout.py`.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    bint unlikely(bint condition) nogil

cdef enum:
    MIN_HEADER_SIZE = 2
    NOGIL_BYTES = 32 << 10  # below, other threads gain less than giving way to them costs

cdef enum:  # what can be wrong with a record or message, in the order of FAULTS
    SOUND = 0
    VARINT_CUT
    VARINT_TOO_LONG
    RECORD_LENGTH
    RECORD_LEFTOVER
    FIELD_LENGTH
    OFFSET_ORDER
    HEADER_COUNT
    HEADER_KEY
    TIMESTAMP_RANGE
    MESSAGE_LENGTH
    MESSAGE_MAGIC
    MESSAGE_CRC
    MESSAGE_ORDER
    MESSAGE_NESTED
    NO_MEMORY


cdef struct Cursor:
    const uint8_t *at
    const uint8_t *end
    int fault


cdef inline void fail(Cursor *cursor, int fault) noexcept nogil:
    """Note the first fault; there is nothing left to read after it."""
    if cursor.fault == SOUND:
        cursor.fault = fault
    cursor.at = cursor.end


cdef inline uint64_t take_long_varint(Cursor *cursor, int max_bytes, int last_bits) noexcept nogil:
    """A varint of any size; its last possible byte holds `last_bits` bits."""
    cdef uint64_t number = 0
    cdef int index
    cdef uint8_t byte
    for index in range(max_bytes):
        if cursor.at >= cursor.end:
            fail(cursor, VARINT_CUT)
            return 0
        byte = cursor.at[0]
        cursor.at += 1
        number |= (<uint64_t> (byte & 0x7F)) << (7 * index)
        if byte < 0x80:
            if index == max_bytes - 1 and byte >> last_bits:
                break
            return number
    fail(cursor, VARINT_TOO_LONG)
    return 0


cdef inline uint64_t take_unsigned(Cursor *cursor, int max_bytes, int last_bits) noexcept nogil:
    """A varint; nearly all have one or two bytes."""
    cdef const uint8_t *at = cursor.at
    cdef ptrdiff_t left = cursor.end - at
    if left >= 2:
        if at[0] < 0x80:
            cursor.at = at + 1
            return at[0]
        if at[1] < 0x80:
            cursor.at = at + 2
            return (at[0] & 0x7F) | (<uint64_t> at[1] << 7)
    return take_long_varint(cursor, max_bytes, last_bits)


cdef inline int32_t signed_of(uint32_t number) noexcept nogil:
    """What a varint says that is written as `number` (zigzag)."""
    return <int32_t> ((number >> 1) ^ (0 - (number & 1)))


cdef inline int32_t take_varint(Cursor *cursor) noexcept nogil:
    return signed_of(<uint32_t> take_unsigned(cursor, 5, 4))


cdef inline int64_t take_varlong(Cursor *cursor) noexcept nogil:
    cdef uint64_t number = take_unsigned(cursor, 10, 1)
    return <int64_t> ((number >> 1) ^ (0 - (number & 1)))


cdef struct Bytes:
    const uint8_t *data
    int32_t size  # -1 is null


cdef inline Bytes take_bytes(Cursor *cursor) noexcept nogil:
    cdef Bytes content
    content.size = take_varint(cursor)
    content.data = cursor.at
    if content.size > 0:
        if unlikely(content.size > cursor.end - cursor.at):
            content.size = 0
            fail(cursor, FIELD_LENGTH)
        else:
            cursor.at += content.size
    elif unlikely(content.size < -1):
        content.size = 0
        fail(cursor, FIELD_LENGTH)
    return content


cdef inline Bytes take_header_key(Cursor *cursor) noexcept nogil:
    cdef Bytes key
    key.size = take_varint(cursor)
    key.data = cursor.at
    if key.size < 0 or key.size > cursor.end - cursor.at:
        key.size = 0
        fail(cursor, HEADER_KEY)
    else:
        cursor.at += key.size
    return key


# --- one record

cdef struct Record:
    int64_t timestamp_delta
    int32_t offset_delta
    Bytes key
    Bytes value
    int32_t header_count
    Cursor headers  # what lies behind the count


cdef inline void take_record(
    Cursor *cursor, Record *record, int32_t last_delta, int32_t max_delta
) noexcept nogil:
    """The next record; `cursor` ends behind it, or has a fault."""
    cdef Cursor inner
    cdef int32_t size = take_varint(cursor)
    if unlikely(size < 0 or size > cursor.end - cursor.at):
        fail(cursor, RECORD_LENGTH)
        return
    inner.at = cursor.at
    inner.end = cursor.at + size
    inner.fault = cursor.fault
    if size:
        inner.at += 1  # the record's attributes, which mean nothing
    else:
        fail(&inner, VARINT_CUT)
    record.timestamp_delta = take_varlong(&inner)
    record.offset_delta = take_varint(&inner)
    if unlikely(record.offset_delta <= last_delta or record.offset_delta > max_delta):
        fail(&inner, OFFSET_ORDER)
    record.key = take_bytes(&inner)
    record.value = take_bytes(&inner)
    record.header_count = take_varint(&inner)
    record.headers = inner
    if record.header_count:
        pass_headers(&inner, record.header_count)
    if unlikely(inner.at != inner.end):
        fail(&inner, RECORD_LEFTOVER)
    cursor.at = inner.end
    cursor.fault = inner.fault


cdef inline void pass_headers(Cursor *cursor, int32_t count) noexcept nogil:
    """Check the headers of a record, which `append_headers` may then copy."""
    cdef int32_t _index
    if count < 0 or count > (cursor.end - cursor.at) // MIN_HEADER_SIZE:
        fail(cursor, HEADER_COUNT)
        return
    for _index in range(count):
        take_header_key(cursor)
        take_bytes(cursor)
        if cursor.fault:
            return
