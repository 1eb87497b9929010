"""One batch: the fields of its header that matter here, and the walk over its records.

`batch.py` and `record.py` are the same in plain Python. Format: `layout.py`.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pyspark_kafkaproto.records._columns cimport (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Rows,
    append_bytes,
    append_headers,
)
from pyspark_kafkaproto.records._cursor cimport (
    NO_MEMORY,
    SOUND,
    TIMESTAMP_RANGE,
    Bytes,
    Cursor,
    Record,
    take_record,
    unlikely,
)

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


cdef struct Outcome:
    int fault
    int32_t index  # of the record with the fault
    size_t left  # bytes behind the last record
    Bytes first_key


cdef inline bint set_timestamp(Rows *rows, Batch *batch, int64_t delta) noexcept nogil:
    """Add the timestamp of a row; False when it does not fit 64 bits as microseconds."""
    cdef int64_t timestamp = batch.base_timestamp
    cdef int64_t largest = INT64_MAX // 1000
    if batch.attributes & LOG_APPEND_TIME:
        timestamp = batch.max_timestamp
    elif delta > 0 and timestamp > INT64_MAX - delta:
        return False
    elif delta < 0 and timestamp < -INT64_MAX - delta:
        return False
    else:
        timestamp += delta
    if timestamp > largest or timestamp < -largest:
        return False
    (<int64_t *> rows.timestamps.data)[rows.count] = timestamp * 1000
    return True


cdef inline int append_row(
    Rows *rows, Batch *batch, Record *record, const uint8_t *source_end
) noexcept nogil:
    """Add the wanted fields of one record; `reserve_rows` has made room."""
    cdef int wanted = rows.wanted
    if wanted & OFFSET:
        (<int64_t *> rows.offsets.data)[rows.count] = batch.base_offset + record.offset_delta
    if wanted & TIMESTAMP and not set_timestamp(rows, batch, record.timestamp_delta):
        return TIMESTAMP_RANGE
    if wanted & TIMESTAMP_TYPE:
        (<int32_t *> rows.timestamp_types.data)[rows.count] = (
            1 if batch.attributes & LOG_APPEND_TIME else 0
        )
    if wanted & KEY and not append_bytes(&rows.key, rows.count, record.key, source_end):
        return NO_MEMORY
    if wanted & VALUE and not append_bytes(&rows.value, rows.count, record.value, source_end):
        return NO_MEMORY
    if wanted & HEADERS and not append_headers(rows, record, source_end):
        return NO_MEMORY
    rows.count += 1
    return SOUND


cdef inline Outcome walk(
    const uint8_t *data, size_t size, Batch *batch, Rows *rows, int64_t first, int64_t stop
) noexcept nogil:
    """Read all records of a batch; those with an offset in [first, stop) become rows."""
    cdef Cursor cursor
    cdef Record record
    cdef Outcome outcome
    cdef int32_t last_delta = -1
    cdef int64_t offset
    cursor.at = data
    cursor.end = data + size
    cursor.fault = SOUND
    memset(&outcome, 0, sizeof(outcome))
    for outcome.index in range(batch.record_count):
        take_record(&cursor, &record, last_delta, batch.last_offset_delta)
        if unlikely(cursor.fault):
            outcome.fault = cursor.fault
            return outcome
        if outcome.index == 0:
            outcome.first_key = record.key
        last_delta = record.offset_delta
        offset = batch.base_offset + last_delta
        if first <= offset < stop:
            outcome.fault = append_row(rows, batch, &record, data + size)
            if unlikely(outcome.fault):
                return outcome
    outcome.left = cursor.end - cursor.at
    return outcome
