"""Columns in Arrow's memory layout, growing row by row, and the memory they grow in.

No size here was read from the wire: callers ask for room by bytes they have seen.
Layout: https://arrow.apache.org/docs/format/Columnar.html
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from pyspark_kafkaproto.records._cursor cimport (
    Bytes,
    Cursor,
    Record,
    take_bytes,
    take_header_key,
)

cdef enum:  # columns.Columns
    OFFSET = 1
    TIMESTAMP = 2
    TIMESTAMP_TYPE = 4
    KEY = 8
    VALUE = 16
    HEADERS = 32

# Free bytes that every area keeps behind its content: short copies move whole blocks.
cdef enum:
    COPY_BLOCK = 32
    SLACK = 2 * COPY_BLOCK
    MIN_CAPACITY = 256


cdef struct Area:
    uint8_t *data
    size_t used
    size_t capacity
    int kind  # which column it is for; 0 for none that is kept for the next chunk


cdef inline bint reserve(Area *area, size_t extra) noexcept nogil:
    """Room for `extra` bytes more, and the slack behind them; False when there is no memory."""
    cdef size_t needed = area.used + extra + SLACK
    cdef uint8_t *data
    if needed <= area.capacity:
        return True
    needed = max(max(needed, 2 * area.capacity), <size_t> MIN_CAPACITY)
    data = <uint8_t *> realloc(area.data, needed)
    if data == NULL:
        return False
    area.data = data
    area.capacity = needed
    return True


cdef inline void give_back(Area *area) noexcept nogil:
    """Free the room that was not needed, all but the slack; the content may move."""
    cdef size_t needed = area.used + SLACK
    cdef uint8_t *data = <uint8_t *> realloc(area.data, needed)
    if data == NULL:
        return
    area.data = data
    area.capacity = needed


cdef struct Binary:
    Area offsets
    Area data
    Area validity  # empty while no row is null


cdef struct Rows:
    int wanted
    size_t count
    Area offsets
    Area timestamps
    Area timestamp_types
    Binary key
    Binary value
    Area list_offsets
    Area list_validity
    size_t pair_count
    Binary header_keys
    Binary header_values


cdef inline bint extend_validity(Area *validity, size_t needed) noexcept nogil:
    """At least `needed` bytes of bits, new ones set."""
    cdef size_t extra = max(needed - validity.used, validity.used, <size_t> MIN_CAPACITY)
    if not reserve(validity, extra):
        return False
    memset(validity.data + validity.used, 0xFF, extra)
    validity.used += extra
    return True


cdef inline bint mark_null(Area *validity, size_t row) noexcept nogil:
    """Clear the bit of `row`; rows not marked are valid."""
    if row // 8 >= validity.used and not extend_validity(validity, row // 8 + 1):
        return False
    validity.data[row // 8] &= <uint8_t> ~(1 << (row % 8))
    return True


cdef inline bint reserve_numbers(
    Area *area, size_t width, size_t count, size_t more
) noexcept nogil:
    """Room for `more` numbers of `width` bytes behind the `count` that are there."""
    area.used = width * count
    return reserve(area, width * more)


cdef inline bint reserve_offsets(Area *area, size_t count, size_t more) noexcept nogil:
    """As above for the offsets of `count` rows, of which there is one more."""
    if not reserve_numbers(area, sizeof(int32_t), count + 1, more):
        return False
    (<int32_t *> area.data)[0] = 0
    return True


cdef inline bint reserve_binary(
    Binary *column, size_t count, size_t more, size_t size
) noexcept nogil:
    """Room for `more` byte strings of `size` bytes together, behind `count`."""
    return reserve_offsets(&column.offsets, count, more) and reserve(&column.data, size)


cdef inline void copy(
    uint8_t *target, const uint8_t *source, size_t size, const uint8_t *source_end
) noexcept nogil:
    """Copy, in whole blocks where the source has them: the target has slack behind it."""
    cdef size_t done = COPY_BLOCK
    if size > 8 * COPY_BLOCK or source_end - source < <ptrdiff_t> (size + COPY_BLOCK):
        memcpy(target, source, size)
        return
    memcpy(target, source, COPY_BLOCK)
    while done < size:
        memcpy(target + done, source + done, COPY_BLOCK)
        done += COPY_BLOCK


cdef inline bint append_bytes(
    Binary *column, size_t row, Bytes content, const uint8_t *source_end
) noexcept nogil:
    """Add a row to a column that has room for it."""
    if content.size > 0:
        copy(column.data.data + column.data.used, content.data, content.size, source_end)
        column.data.used += content.size
    elif content.size < 0 and not mark_null(&column.validity, row):
        return False
    (<int32_t *> column.offsets.data)[row + 1] = <int32_t> column.data.used
    return True


cdef inline bint append_headers(
    Rows *rows, Record *record, const uint8_t *source_end
) noexcept nogil:
    """Add the row's list of headers, which were checked before."""
    cdef Cursor cursor = record.headers
    cdef size_t count = record.header_count
    cdef size_t size = cursor.end - cursor.at
    cdef size_t index
    if count == 0 and not mark_null(&rows.list_validity, rows.count):
        return False
    if not reserve_binary(&rows.header_keys, rows.pair_count, count, size):
        return False
    if not reserve_binary(&rows.header_values, rows.pair_count, count, size):
        return False
    for index in range(rows.pair_count, rows.pair_count + count):
        if not append_bytes(&rows.header_keys, index, take_header_key(&cursor), source_end):
            return False
        if not append_bytes(&rows.header_values, index, take_bytes(&cursor), source_end):
            return False
    rows.pair_count += count
    (<int32_t *> rows.list_offsets.data)[rows.count + 1] = <int32_t> rows.pair_count
    return True


cdef inline bint reserve_rows(Rows *rows, size_t more, size_t size) noexcept nogil:
    """Room in the wanted columns for `more` rows made of `size` bytes.

    What the columns hold is counted here, not row by row: it follows from `rows.count`.
    """
    cdef int wanted = rows.wanted
    cdef size_t count = rows.count
    if wanted & OFFSET and not reserve_numbers(&rows.offsets, sizeof(int64_t), count, more):
        return False
    if wanted & TIMESTAMP and not reserve_numbers(&rows.timestamps, sizeof(int64_t), count, more):
        return False
    if wanted & TIMESTAMP_TYPE and not reserve_numbers(
        &rows.timestamp_types, sizeof(int32_t), count, more
    ):
        return False
    if wanted & KEY and not reserve_binary(&rows.key, count, more, size):
        return False
    if wanted & VALUE and not reserve_binary(&rows.value, count, more, size):
        return False
    if wanted & HEADERS:
        return (
            reserve_offsets(&rows.list_offsets, count, more)
            and reserve_binary(&rows.header_keys, rows.pair_count, 0, 0)
            and reserve_binary(&rows.header_values, rows.pair_count, 0, 0)
        )
    return True


cdef inline void free_binary(Binary *column) noexcept nogil:
    free(column.offsets.data)
    free(column.data.data)
    free(column.validity.data)


cdef inline void free_rows(Rows *rows) noexcept nogil:
    """Free what was not handed over."""
    free(rows.offsets.data)
    free(rows.timestamps.data)
    free(rows.timestamp_types.data)
    free(rows.list_offsets.data)
    free(rows.list_validity.data)
    free_binary(&rows.key)
    free_binary(&rows.value)
    free_binary(&rows.header_keys)
    free_binary(&rows.header_values)
