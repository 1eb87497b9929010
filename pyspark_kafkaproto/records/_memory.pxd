"""What the decoder sees of the memory that columns grow in."""

from pyspark_kafkaproto.records._columns cimport Area, Binary, Rows


cdef class Memory:
    cdef Area area


cdef void take_kept_rows(Rows *rows) noexcept
cdef Memory handed_over(Area *area)
cdef object binary_column(Binary *column, size_t rows)
cdef object headers_column(Rows *rows)
