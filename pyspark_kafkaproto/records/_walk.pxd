"""The walk over the records of a batch; `record.py` is the same in plain Python."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memset

from pyspark_kafkaproto.records._batch cimport LOG_APPEND_TIME, Batch
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
from pyspark_kafkaproto.records._plain cimport append_plain, may_be_plain

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
    cdef int32_t taken
    cdef int64_t offset
    cdef bint is_plain = may_be_plain(batch, first, stop)
    cursor.at = data
    cursor.end = data + size
    cursor.fault = SOUND
    memset(&outcome, 0, sizeof(outcome))
    while outcome.index < batch.record_count:
        if is_plain:
            taken = append_plain(
                &cursor, batch, rows, batch.record_count - outcome.index, &last_delta
            )
            outcome.index += taken
            is_plain = taken > 0  # a look that was in vain is the last one
            if outcome.index == batch.record_count:
                break
            if unlikely(cursor.fault):
                outcome.fault = cursor.fault
                return outcome
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
        outcome.index += 1
    outcome.left = cursor.end - cursor.at
    return outcome
