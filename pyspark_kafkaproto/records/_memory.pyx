# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The memory that columns grow in, kept from chunk to chunk, and handed over as what Arrow takes.

It knows nothing of batches. Whoever holds a `Memory` may give it to another thread: all of this is
called with the interpreter held, which is the lock of what is kept.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdlib cimport free

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
    extend_validity,
    give_back,
    reserve,
)

from pyspark_kafkaproto.records.columns import BinaryColumn, HeadersColumn

# Areas whose columns are gone, one short stack per kind of column: the next chunk grows in pages
# that are mapped already. Touching new ones costs more than decoding does.
cdef enum:
    KINDS = 13  # twelve, as `take_kept_rows` numbers them, and 0 for areas not worth keeping
    KEPT_PER_KIND = 3  # the consumer holds one or two chunks while the next is decoded
    MAX_KEPT_BYTES = 8 << 20  # of one area, which a chunk seldom passes
    MAX_ALL_KEPT_BYTES = 16 << 20

cdef Area kept_areas[KINDS][KEPT_PER_KIND]
cdef int kept_counts[KINDS]
cdef size_t all_kept_bytes = 0


cdef void keep_or_free(Area *area) noexcept:
    """Keep the area for the next chunk if it is of a kind and small enough, else free it."""
    global all_kept_bytes
    cdef int kind = area.kind
    if (
        area.data == NULL
        or kind == 0
        or area.capacity > MAX_KEPT_BYTES
        or all_kept_bytes + area.capacity > MAX_ALL_KEPT_BYTES
        or kept_counts[kind] == KEPT_PER_KIND
    ):
        free(area.data)
        return
    kept_areas[kind][kept_counts[kind]] = area[0]
    kept_counts[kind] += 1
    all_kept_bytes += area.capacity


cdef void take_kept(Area *area, int kind) noexcept:
    """Begin `area` with one that was kept, if there is any."""
    global all_kept_bytes
    if kept_counts[kind]:
        kept_counts[kind] -= 1
        area[0] = kept_areas[kind][kept_counts[kind]]
        area.used = 0
        all_kept_bytes -= area.capacity
    area.kind = kind


cdef void take_kept_rows(Rows *rows) noexcept:
    """Begin the wanted columns with what was kept."""
    if rows.wanted & OFFSET:
        take_kept(&rows.offsets, 1)
    if rows.wanted & TIMESTAMP:
        take_kept(&rows.timestamps, 2)
    if rows.wanted & TIMESTAMP_TYPE:
        take_kept(&rows.timestamp_types, 3)
    if rows.wanted & KEY:
        take_kept(&rows.key.offsets, 4)
        take_kept(&rows.key.data, 5)
    if rows.wanted & VALUE:
        take_kept(&rows.value.offsets, 6)
        take_kept(&rows.value.data, 7)
    if rows.wanted & HEADERS:
        take_kept(&rows.list_offsets, 8)
        take_kept(&rows.header_keys.offsets, 9)
        take_kept(&rows.header_keys.data, 10)
        take_kept(&rows.header_values.offsets, 11)
        take_kept(&rows.header_values.data, 12)


cdef class Memory:
    """An area whose growth is over, to be read through the buffer protocol."""

    def __dealloc__(self):
        keep_or_free(&self.area)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.area.data, <Py_ssize_t> self.area.used, 1, flags)


cdef Memory handed_over(Area *area):
    """The content of `area` as an object that owns it."""
    cdef Memory memory = Memory.__new__(Memory)
    if area.data == NULL and not reserve(area, 0):
        raise MemoryError
    if area.capacity > MAX_KEPT_BYTES:
        give_back(area)  # it had room for all of a batch, and may have got none of it
    memory.area = area[0]
    area.data = NULL
    return memory


cdef object validity_bitmap(Area *validity, size_t rows):
    """A bit per row, the least significant first; None when no row is null."""
    cdef size_t size = (rows + 7) // 8
    if validity.used == 0:
        return None
    if validity.used < size and not extend_validity(validity, size):
        raise MemoryError
    validity.used = size
    return handed_over(validity)


cdef object binary_column(Binary *column, size_t rows):
    return BinaryColumn(
        handed_over(&column.offsets),
        handed_over(&column.data),
        validity_bitmap(&column.validity, rows),
    )


cdef object headers_column(Rows *rows):
    return HeadersColumn(
        handed_over(&rows.list_offsets),
        validity_bitmap(&rows.list_validity, rows.count),
        rows.pair_count,
        binary_column(&rows.header_keys, rows.pair_count),
        binary_column(&rows.header_values, rows.pair_count),
    )
