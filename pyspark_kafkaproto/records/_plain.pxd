"""Rows of plain records, as nearly all are: no headers, and no number of more than two bytes.

Law: `walk` gives the same without it, only later. What is not plain is left to it, all damage too.
It is faster as nothing that holds for a whole batch is looked at with each record, and as what
grows stands in variables: of a structure behind a pointer each byte written could be a part.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t

from pyspark_kafkaproto.records._batch cimport LOG_APPEND_TIME, Batch
from pyspark_kafkaproto.records._columns cimport (
    HEADERS,
    KEY,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Area,
    Binary,
    Rows,
    append_bytes,
    mark_null,
)
from pyspark_kafkaproto.records._cursor cimport NO_MEMORY, Bytes, Cursor, signed_of

cdef enum:
    LONGEST_START = 16  # bytes looked at from a record's first one on, whatever they say
    LARGEST_SHORT = 1 << 13  # beyond what a varint of two bytes can say


cdef struct Plain:
    int32_t timestamp_delta
    int32_t offset_delta
    Bytes key
    Bytes value
    const uint8_t *stop  # behind the record


cdef inline uint32_t take_short(const uint8_t **at, uint8_t *too_long) noexcept nogil:
    """A varint of one or two bytes; `too_long` has its highest bit where there are more."""
    cdef uint32_t number = at[0][0]
    if number >= 0x80:
        too_long[0] |= at[0][1]
        number = (number & 0x7F) | <uint32_t> at[0][1] << 7
        at[0] += 1
    at[0] += 1
    return number


cdef inline bint take_plain(
    Plain *record, const uint8_t *at, const uint8_t *end, int32_t last_delta, int32_t max_delta
) noexcept nogil:
    """The record at `at`; False if it is not plain."""
    cdef uint32_t size
    cdef uint8_t too_long = 0
    if end - at < LONGEST_START:
        return False
    size = take_short(&at, &too_long)  # twice the size: what is odd would be a negative one
    if size & 1 or size >> 1 > <size_t> (end - at):
        return False
    record.stop = at + (size >> 1)
    at += 1  # the record's attributes, which mean nothing
    record.timestamp_delta = signed_of(take_short(&at, &too_long))
    record.offset_delta = signed_of(take_short(&at, &too_long))
    if record.offset_delta <= last_delta or record.offset_delta > max_delta:
        return False
    record.key.size = signed_of(take_short(&at, &too_long))
    record.key.data = at
    if record.key.size != -1:
        if record.key.size < 0 or record.key.size > record.stop - at - 2:
            return False
        at += record.key.size
    record.value.size = signed_of(take_short(&at, &too_long))
    record.value.data = at
    if record.value.size != -1:
        if record.value.size < 0:
            return False
        at += record.value.size
    # What is left of it is the number of its headers.
    return at + 1 == record.stop and at[0] == 0 and too_long < 0x80


cdef inline bint may_be_plain(Batch *batch, int64_t first, int64_t stop) noexcept nogil:
    """Whether records of `batch` may be: all of them are rows, and none has a time out of range."""
    cdef int64_t time = batch.base_timestamp
    if batch.attributes & LOG_APPEND_TIME:
        time = batch.max_timestamp
    return (
        first <= batch.base_offset
        and batch.base_offset + batch.last_offset_delta < stop
        and -(INT64_MAX // 1000) + LARGEST_SHORT < time < INT64_MAX // 1000 - LARGEST_SHORT
    )


cdef inline void set_timestamp_types(Rows *rows, Batch *batch, size_t count) noexcept nogil:
    cdef int32_t kind = 1 if batch.attributes & LOG_APPEND_TIME else 0
    cdef size_t row
    for row in range(rows.count, rows.count + count):
        (<int32_t *> rows.timestamp_types.data)[row] = kind


cdef inline int32_t append_plain(
    Cursor *cursor, Batch *batch, Rows *rows, int32_t most, int32_t *last_delta
) noexcept nogil:
    """Make rows of records, `most` of them, up to the first that is not plain; how many.

    `reserve_rows` has made room for them, and they may be plain. Where there is no memory for a
    column of bits the cursor has that fault: a part of a row is there, which nobody may add again.
    """
    cdef const uint8_t *at = cursor.at
    cdef const uint8_t *end = cursor.end
    cdef Plain record
    cdef Binary keys = rows.key
    cdef Binary values = rows.value
    cdef Area headers = rows.list_validity
    cdef int wanted = rows.wanted
    cdef int64_t *offsets = <int64_t *> rows.offsets.data if wanted & OFFSET else NULL
    cdef int64_t *times = <int64_t *> rows.timestamps.data if wanted & TIMESTAMP else NULL
    cdef int64_t base_time, per_delta
    cdef size_t row = rows.count
    cdef size_t stop = row + most
    cdef int32_t last = last_delta[0]
    cdef int32_t max_delta = batch.last_offset_delta
    cdef int64_t base_offset = batch.base_offset
    if batch.attributes & LOG_APPEND_TIME:
        base_time, per_delta = batch.max_timestamp * 1000, 0
    else:
        base_time, per_delta = batch.base_timestamp * 1000, 1000
    while row < stop and take_plain(&record, at, end, last, max_delta):
        if wanted & KEY and not append_bytes(&keys, row, record.key, end):
            cursor.fault = NO_MEMORY
            break
        if wanted & VALUE and not append_bytes(&values, row, record.value, end):
            cursor.fault = NO_MEMORY
            break
        if wanted & HEADERS:
            if not mark_null(&headers, row):
                cursor.fault = NO_MEMORY
                break
            (<int32_t *> rows.list_offsets.data)[row + 1] = <int32_t> rows.pair_count
        if offsets != NULL:
            offsets[row] = base_offset + record.offset_delta
        if times != NULL:
            times[row] = base_time + per_delta * record.timestamp_delta
        last = record.offset_delta
        at = record.stop
        row += 1
    if wanted & TIMESTAMP_TYPE:
        set_timestamp_types(rows, batch, row - rows.count)
    cursor.at = at
    last_delta[0] = last
    most = <int32_t> (row - rows.count)
    rows.count = row
    rows.key = keys
    rows.value = values
    rows.list_validity = headers
    return most
