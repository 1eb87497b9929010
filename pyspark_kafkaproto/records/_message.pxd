"""Messages of magic 0 and 1: one message, and the two walks over a set of them.

The first walk checks all of them and counts; the second makes rows of what the first has seen.
`legacy.py` is the same in plain Python. Format: `layout.py`.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memset

from pyspark_kafkaproto.records._batch cimport (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_POS,
    Batch,
    int32_at,
    int64_at,
    uint32_at,
)
from pyspark_kafkaproto.records._columns cimport (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Rows,
    append_bytes,
    mark_null,
    reserve_rows,
)
from pyspark_kafkaproto.records._crc32 cimport Crc32Tables, crc32
from pyspark_kafkaproto.records._cursor cimport (
    FIELD_LENGTH,
    MESSAGE_CRC,
    MESSAGE_LENGTH,
    MESSAGE_MAGIC,
    MESSAGE_NESTED,
    MESSAGE_ORDER,
    NO_MEMORY,
    RECORD_LEFTOVER,
    SOUND,
    TIMESTAMP_RANGE,
    Bytes,
    Cursor,
    fail,
    unlikely,
)

cdef enum:
    MESSAGE_SIZE = 18  # up to the attributes
    MIN_LENGTH = 14
    NO_TIMESTAMP_MS = -1
    NO_TIMESTAMP_TYPE = -1

cdef struct Message:
    int64_t offset
    int64_t timestamp
    uint8_t attributes
    Bytes key
    Bytes value

cdef struct MessageSet:
    const uint8_t *data
    size_t size
    const Crc32Tables *tables  # NULL where the checksums are not to be looked at
    # What the survey finds:
    int fault
    size_t index  # of the message with the fault
    size_t count
    int64_t first  # offsets as they stand there
    int64_t last


cdef inline int32_t min_length(int32_t magic) noexcept nogil:
    """The least length of a message of magic 0 or 1."""
    return MIN_LENGTH + 8 * magic


cdef inline bint read_message_header(
    const uint8_t *at, size_t left, int32_t limit, Batch *batch
) noexcept nogil:
    """The header of a whole message of magic 0 or 1; False for all else."""
    cdef int32_t magic, length
    if left < MESSAGE_SIZE or at[MAGIC_POS] > 1:
        return False
    magic = at[MAGIC_POS]
    length = int32_at(at + 8)
    if (
        length < min_length(magic)
        or length - min_length(magic) > limit
        or left < LOG_OVERHEAD + <size_t> length
    ):
        return False
    batch.stop = batch.pos + LOG_OVERHEAD + length
    batch.magic = magic
    batch.base_offset = int64_at(at)
    batch.crc = uint32_at(at + 12)
    batch.attributes = at[17] & (CODEC_MASK | LOG_APPEND_TIME if magic else CODEC_MASK)
    batch.last_offset_delta = 0
    batch.base_timestamp = 0
    batch.max_timestamp = int64_at(at + MESSAGE_SIZE) if magic else NO_TIMESTAMP_MS
    batch.producer_id = -1
    batch.record_count = 1
    return True


cdef inline Bytes take_field(Cursor *cursor) noexcept nogil:
    """A key or value: its size in four bytes, and as many bytes."""
    cdef Bytes content
    content.size = 0
    content.data = cursor.at
    if unlikely(cursor.end - cursor.at < 4):
        fail(cursor, FIELD_LENGTH)
        return content
    content.size = int32_at(cursor.at)
    cursor.at += 4
    content.data = cursor.at
    if unlikely(content.size < -1 or content.size > cursor.end - cursor.at):
        content.size = 0
        fail(cursor, FIELD_LENGTH)
    elif content.size > 0:
        cursor.at += content.size
    return content


cdef inline void take_message(
    Cursor *cursor, Message *message, int32_t magic, const Crc32Tables *tables
) noexcept nogil:
    """The next message of a set; `cursor` ends behind it, or has a fault."""
    cdef const uint8_t *at = cursor.at
    cdef Cursor inner
    cdef int32_t length
    if cursor.end - at < MESSAGE_SIZE:
        fail(cursor, MESSAGE_LENGTH)
        return
    length = int32_at(at + 8)
    if length < MIN_LENGTH or length > cursor.end - at - LOG_OVERHEAD:
        fail(cursor, MESSAGE_LENGTH)
        return
    if at[MAGIC_POS] != magic:
        fail(cursor, MESSAGE_MAGIC)
        return
    if length < min_length(magic):
        fail(cursor, MESSAGE_LENGTH)
        return
    inner.at = at + MESSAGE_SIZE + 8 * magic
    inner.end = at + LOG_OVERHEAD + length
    inner.fault = SOUND
    if tables != NULL and crc32(tables, at + MAGIC_POS, inner.end) != uint32_at(at + 12):
        fail(cursor, MESSAGE_CRC)
        return
    message.offset = int64_at(at)
    message.attributes = at[17]
    message.timestamp = int64_at(at + MESSAGE_SIZE) if magic else NO_TIMESTAMP_MS
    message.key = take_field(&inner)
    message.value = take_field(&inner)
    if unlikely(inner.at != inner.end):
        fail(&inner, RECORD_LEFTOVER)
    cursor.at = inner.end
    cursor.fault = inner.fault


cdef inline void survey(MessageSet *messages, int32_t magic) noexcept nogil:
    """Check all messages of a set, and say how many there are and between which offsets."""
    cdef Cursor cursor
    cdef Message message
    cursor.at = messages.data
    cursor.end = messages.data + messages.size
    cursor.fault = SOUND
    messages.count = 0
    messages.first = 0
    messages.last = -1
    while cursor.at < cursor.end:
        take_message(&cursor, &message, magic, messages.tables)
        if cursor.fault == SOUND and message.attributes & CODEC_MASK:
            cursor.fault = MESSAGE_NESTED
        if cursor.fault == SOUND and message.offset <= messages.last:
            cursor.fault = MESSAGE_ORDER
        if unlikely(cursor.fault):
            messages.fault = cursor.fault
            messages.index = messages.count
            return
        if messages.count == 0:
            messages.first = message.offset
        messages.last = message.offset
        messages.count += 1
    messages.fault = SOUND


cdef inline int append_message(
    Rows *rows, Batch *batch, Message *message, int64_t offset, const uint8_t *source_end
) noexcept nogil:
    """Add the wanted fields of one message; `reserve_rows` has made room.

    Not `append_row`: a second caller would keep that out of the walk over a batch's records, which
    was measured to take a tenth longer for it.
    """
    cdef int wanted = rows.wanted
    cdef bint is_append_time = batch.attributes & LOG_APPEND_TIME != 0
    cdef int64_t timestamp = batch.max_timestamp if is_append_time else message.timestamp
    if wanted & OFFSET:
        (<int64_t *> rows.offsets.data)[rows.count] = offset
    if wanted & TIMESTAMP:
        if timestamp > INT64_MAX // 1000 or timestamp < -(INT64_MAX // 1000):
            return TIMESTAMP_RANGE
        (<int64_t *> rows.timestamps.data)[rows.count] = timestamp * 1000
    if wanted & TIMESTAMP_TYPE:
        (<int32_t *> rows.timestamp_types.data)[rows.count] = (
            is_append_time if batch.magic else NO_TIMESTAMP_TYPE
        )
    if wanted & KEY and not append_bytes(&rows.key, rows.count, message.key, source_end):
        return NO_MEMORY
    if wanted & VALUE and not append_bytes(&rows.value, rows.count, message.value, source_end):
        return NO_MEMORY
    if wanted & HEADERS:
        if not mark_null(&rows.list_validity, rows.count):
            return NO_MEMORY
        (<int32_t *> rows.list_offsets.data)[rows.count + 1] = <int32_t> rows.pair_count
    rows.count += 1
    return SOUND


cdef inline void append_messages(
    MessageSet *messages, Batch *batch, Rows *rows, int64_t shift, int64_t first, int64_t stop
) noexcept nogil:
    """Make rows of those with an offset in [first, stop); the survey found all of them sound."""
    cdef Cursor cursor
    cdef Message message
    cdef int64_t offset
    cursor.at = messages.data
    cursor.end = messages.data + messages.size
    cursor.fault = SOUND
    memset(&message, 0, sizeof(message))
    if not reserve_rows(rows, messages.count, messages.size):
        messages.fault = NO_MEMORY
        return
    for messages.index in range(messages.count):
        take_message(&cursor, &message, batch.magic, NULL)
        offset = message.offset + shift
        if first <= offset < stop:
            messages.fault = append_message(rows, batch, &message, offset, cursor.end)
            if unlikely(messages.fault):
                return
