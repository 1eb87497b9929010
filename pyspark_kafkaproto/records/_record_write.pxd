"""One row of Arrow columns to the bytes of one record.

Offsets come from whoever made the columns: each pair of them is looked at before it is used, and
`reference_write.py` refuses the same rows for the same reason. Format: `layout.py`.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from pyspark_kafkaproto.records._columns cimport Area, copy, reserve
from pyspark_kafkaproto.records._cursor cimport unlikely

cdef enum:
    HEADER_SIZE = 61

cdef enum:  # writing.Fault, and what has no number there
    SOUND = 0
    ROW
    TIMESTAMP
    OFFSETS
    HEADER_KEY
    TOO_LARGE
    NO_MEMORY

cdef enum:  # writing.COLUMN_WORDS
    KEY = 0
    VALUE
    HEADERS
    HEADER_KEYS
    HEADER_VALUES


cdef struct Refused:
    int fault
    int64_t detail


# --- columns

cdef struct Bits:
    const uint8_t *bits  # NULL: no row is null
    int64_t first


cdef struct Strings:  # or lists, whose data are pairs
    bint is_there
    bint is_large
    Bits validity
    const uint8_t *offsets  # of row 0
    const uint8_t *data
    int64_t data_size


cdef struct Times:
    bint is_there
    Bits validity
    const uint8_t *micros  # of row 0


cdef struct Source:
    int64_t rows
    Times times
    Strings key
    Strings value
    Strings lists
    Bits pairs
    Strings header_keys
    Strings header_values


cdef struct Span:
    int64_t begin
    int64_t size  # -1 is null


cdef inline bint is_null(Bits *validity, int64_t row) noexcept nogil:
    cdef int64_t at
    if validity.bits == NULL:
        return False
    at = validity.first + row
    return not validity.bits[at >> 3] >> (at & 7) & 1


cdef inline int64_t int64_of(const uint8_t *numbers, int64_t index) noexcept nogil:
    """Arrow's buffers need not be aligned: `memcpy` is how C reads those."""
    cdef int64_t number
    memcpy(&number, numbers + 8 * index, 8)
    return number


cdef inline int32_t int32_of(const uint8_t *numbers, int64_t index) noexcept nogil:
    cdef int32_t number
    memcpy(&number, numbers + 4 * index, 4)
    return number


cdef inline Span span_of(
    Strings *column, int word, int64_t row, Refused *refused
) noexcept nogil:
    """Where the row lies in the data; null where there is no column."""
    cdef Span span
    cdef int64_t end
    span.begin = 0
    span.size = -1
    if not column.is_there or is_null(&column.validity, row):
        return span
    if column.is_large:
        span.begin = int64_of(column.offsets, row)
        end = int64_of(column.offsets, row + 1)
    else:
        span.begin = int32_of(column.offsets, row)
        end = int32_of(column.offsets, row + 1)
    if unlikely(span.begin < 0 or end < span.begin or end > column.data_size):
        span.begin = 0
        if refused.fault == SOUND:
            refused.fault = OFFSETS
            refused.detail = word
        return span
    span.size = end - span.begin
    return span


# --- varints

cdef inline uint64_t zigzag(int64_t number) noexcept nogil:
    return (<uint64_t> number << 1) ^ <uint64_t> (number >> 63)


cdef inline int varint_size(int64_t number) noexcept nogil:
    cdef uint64_t rest = zigzag(number)
    cdef int size = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *at, int64_t number) noexcept nogil:
    cdef uint64_t rest = zigzag(number)
    while rest > 0x7F:
        at[0] = <uint8_t> (rest | 0x80)
        at += 1
        rest >>= 7
    at[0] = <uint8_t> rest
    return at + 1


cdef inline int64_t field_size(Span span) noexcept nogil:
    return varint_size(span.size) + max(span.size, <int64_t> 0)


cdef inline uint8_t *put_field(uint8_t *at, Strings *column, Span span) noexcept nogil:
    at = put_varint(at, span.size)
    if span.size <= 0:
        return at
    copy(at, column.data + span.begin, span.size, column.data + column.data_size)
    return at + span.size


# --- one record

cdef struct NewRecord:
    int64_t timestamp_ms
    Span key
    Span value
    Span headers  # which pairs
    int64_t headers_size  # of the pairs, without their count


cdef inline int64_t timestamp_of(
    Times *times, int64_t row, int64_t now_ms, Refused *refused
) noexcept nogil:
    cdef int64_t micros
    if not times.is_there or is_null(&times.validity, row):
        return now_ms
    micros = int64_of(times.micros, row)
    if unlikely(micros < 0):
        refused.fault = TIMESTAMP
        refused.detail = micros
    return micros // 1000


cdef inline int64_t size_headers(Source *source, Span pairs, Refused *refused) noexcept nogil:
    """The bytes of a row's headers, once each of them is looked at."""
    cdef int64_t size = 0
    cdef int64_t pair
    cdef Span key
    for pair in range(pairs.begin, pairs.begin + pairs.size):
        key.size = -1
        if not is_null(&source.pairs, pair):
            key = span_of(&source.header_keys, HEADER_KEYS, pair, refused)
        if unlikely(key.size < 0 and refused.fault == SOUND):
            refused.fault = HEADER_KEY
            refused.detail = pair - pairs.begin
        size += field_size(key)
        size += field_size(span_of(&source.header_values, HEADER_VALUES, pair, refused))
        if unlikely(refused.fault):
            return 0
    return size


cdef inline void take_row(
    Source *source, int64_t row, int64_t now_ms, NewRecord *record, Refused *refused
) noexcept nogil:
    """Look at a row in the order of `writing.Fault`; the first fault sticks."""
    if unlikely(row < 0 or row >= source.rows):
        refused.fault = ROW
        return
    record.timestamp_ms = timestamp_of(&source.times, row, now_ms, refused)
    record.key = span_of(&source.key, KEY, row, refused)
    record.value = span_of(&source.value, VALUE, row, refused)
    record.headers = span_of(&source.lists, HEADERS, row, refused)
    record.headers_size = 0
    if record.headers.size < 0:
        record.headers.size = 0
    elif record.headers.size and refused.fault == SOUND:
        record.headers_size = size_headers(source, record.headers, refused)


# --- a batch

cdef struct Body:
    Area area  # the records so far
    int64_t limit  # of the batch, its header included
    int64_t rows
    int64_t base_timestamp
    int64_t max_timestamp


cdef struct Outcome:
    int64_t position
    int64_t row
    Refused refused


cdef inline void put_record(
    Body *body, Source *source, NewRecord *record, int64_t size, int64_t delta
) noexcept nogil:
    """The record behind those that are there; there is room for it."""
    cdef uint8_t *at = body.area.data + body.area.used
    cdef int64_t pair
    at = put_varint(at, size)
    at[0] = 0  # the record's attributes, unused
    at = put_varint(at + 1, delta)
    at = put_varint(at, body.rows)
    at = put_field(at, &source.key, record.key)
    at = put_field(at, &source.value, record.value)
    at = put_varint(at, record.headers.size)
    for pair in range(record.headers.begin, record.headers.begin + record.headers.size):
        at = put_pair(at, source, pair)
    body.area.used = at - body.area.data


cdef inline uint8_t *put_pair(uint8_t *at, Source *source, int64_t pair) noexcept nogil:
    cdef Refused refused  # was looked at by `size_headers`
    refused.fault = SOUND
    at = put_field(
        at, &source.header_keys, span_of(&source.header_keys, HEADER_KEYS, pair, &refused)
    )
    return put_field(
        at, &source.header_values, span_of(&source.header_values, HEADER_VALUES, pair, &refused)
    )


cdef inline bint add_record(
    Body *body, Source *source, NewRecord *record, Refused *refused
) noexcept nogil:
    """Add a record; False when the batch would pass its limit, or with the fault noted."""
    cdef int64_t base = body.base_timestamp if body.rows else record.timestamp_ms
    cdef int64_t delta = record.timestamp_ms - base
    cdef int64_t size = (
        1
        + varint_size(delta)
        + varint_size(body.rows)
        + field_size(record.key)
        + field_size(record.value)
        + varint_size(record.headers.size)
        + record.headers_size
    )
    cdef int64_t whole = size + varint_size(size)
    cdef int64_t batch_size = HEADER_SIZE + <int64_t> body.area.used + whole
    if body.rows and batch_size > body.limit:
        return False
    if unlikely(batch_size > INT32_MAX):
        refused.fault = TOO_LARGE
        return False
    if unlikely(not reserve(&body.area, whole)):
        refused.fault = NO_MEMORY
        return False
    body.base_timestamp = base
    body.max_timestamp = max(body.max_timestamp, record.timestamp_ms)
    put_record(body, source, record, size, delta)
    body.rows += 1
    return True


cdef inline Outcome append_rows(
    Body *body, Source *source, const uint8_t *indices, int64_t start, int64_t stop,
    int64_t now_ms
) noexcept nogil:
    """Append rows, those that `indices` names or all, until the limit or the first fault."""
    cdef Outcome outcome
    cdef NewRecord record
    outcome.refused.fault = SOUND
    outcome.refused.detail = 0
    outcome.row = 0
    outcome.position = start
    while outcome.position < stop:
        outcome.row = outcome.position
        if indices != NULL:
            outcome.row = int32_of(indices, outcome.position)
        take_row(source, outcome.row, now_ms, &record, &outcome.refused)
        if unlikely(outcome.refused.fault):
            break
        if not add_record(body, source, &record, &outcome.refused):
            break
        outcome.position += 1
    return outcome
