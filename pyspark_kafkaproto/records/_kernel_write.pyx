# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The native encoder: buffers of Arrow columns to record batches, and keys to partitions.

Law: any columns give the bytes of a batch or an error that names the row, never anything else, and
no Python object is made per record. Buffers are measured once per call, against the rows they have
to serve; what their offsets say is checked row by row in `_record_write.pxd`.

`reference_write.py` is the same in plain Python; `writing.py` has what both share. An extension
of its own: who only reads does not load it. It must not know pyarrow.
"""

from cpython cimport array
from cpython.buffer cimport (
    PyBUF_READ,
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from array import array as new_array

from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.records import writing as _writing

from pyspark_kafkaproto.records._crc32 cimport (
    Crc32Tables,
    crc32,
    fill_crc32_tables,
    little_uint32_at,
)
from pyspark_kafkaproto.records._cursor cimport NOGIL_BYTES, unlikely
from pyspark_kafkaproto.records._record_write cimport (
    HEADER_KEYS,
    HEADER_SIZE,
    HEADER_VALUES,
    HEADERS,
    KEY,
    NO_MEMORY,
    SOUND,
    VALUE,
    Bits,
    Body,
    Outcome,
    Refused,
    Source,
    Span,
    Strings,
    append_rows,
    int32_of,
    span_of,
)
from pyspark_kafkaproto.records._snappy_write cimport MOST_PLACES, snap, stream_room

cdef enum:
    MAX_BUFFERS = 24  # nineteen of the columns, one of indices
    SNAPPY = 2

cdef array.array NO_ROWS = new_array("i")


# --- columns

cdef class Held:
    """The buffers of some columns, held and measured while they are read."""

    cdef Py_buffer buffers[MAX_BUFFERS]
    cdef int count

    def __dealloc__(self):
        cdef int index
        for index in range(self.count):
            PyBuffer_Release(&self.buffers[index])

    cdef Py_buffer *hold(self, object buffer) except NULL:
        cdef Py_buffer *held = &self.buffers[self.count]
        PyObject_GetBuffer(buffer, held, PyBUF_SIMPLE)
        self.count += 1
        return held

    cdef const uint8_t *part(
        self, object name, object buffer, int64_t pos, int64_t size
    ) except? NULL:
        """The `size` bytes from `pos` on, once the buffer has them."""
        cdef Py_buffer *held = self.hold(buffer)
        if held.len < pos + size:
            raise _writing.too_short(name, held.len, pos + size)
        return <const uint8_t *> held.buf + pos

    cdef Bits validity(self, object name, object buffer, object first, object rows) except *:
        cdef Bits bits
        _writing.check_place(name, first, rows)
        bits.first = first
        bits.bits = NULL
        if buffer is not None and rows:
            bits.bits = self.part(name, buffer, 0, (bits.first + <int64_t> rows + 7) // 8)
        return bits

    cdef Strings spans(self, int word, object column, object rows) except *:
        """A column of byte strings or lists, without what its offsets count."""
        cdef Strings strings
        cdef int64_t width
        memset(&strings, 0, sizeof(strings))
        name = _writing.COLUMN_WORDS[word]
        strings.is_there = True
        strings.is_large = column.is_large
        strings.validity = self.validity(name, column.validity, column.first, rows)
        width = 8 if strings.is_large else 4
        if rows:
            strings.offsets = self.part(
                name, column.offsets, width * strings.validity.first, width * (rows + 1)
            )
        return strings

    cdef Strings strings(self, int word, object column, object rows) except *:
        cdef Strings strings
        cdef Py_buffer *data
        if column is None:
            memset(&strings, 0, sizeof(strings))
            return strings
        strings = self.spans(word, column, rows)
        data = self.hold(column.data)
        strings.data = <const uint8_t *> data.buf
        strings.data_size = data.len
        return strings

    cdef Source source(self, object columns) except *:
        """All columns, ready to be read without Python."""
        cdef Source source
        rows = columns.rows
        memset(&source, 0, sizeof(source))
        _writing.check_place("the columns", 0, rows)
        source.rows = rows
        self.add_times(&source, columns.timestamps, rows)
        source.key = self.strings(KEY, columns.key, rows)
        source.value = self.strings(VALUE, columns.value, rows)
        self.add_headers(&source, columns.headers, rows)
        return source

    cdef int add_times(self, Source *source, object column, object rows) except -1:
        if column is None:
            return 0
        source.times.is_there = True
        source.times.validity = self.validity("timestamp", column.validity, column.first, rows)
        if rows:
            source.times.micros = self.part(
                "timestamp", column.micros, 8 * source.times.validity.first, 8 * <int64_t> rows
            )
        return 0

    cdef int add_headers(self, Source *source, object column, object rows) except -1:
        if column is None:
            return 0
        _writing.check_place("headers", 0, column.pairs)
        source.lists = self.spans(HEADERS, column, rows)
        source.lists.data_size = column.pairs
        source.pairs = self.validity(
            "headers", column.pairs_validity, column.pairs_first, column.pairs
        )
        source.header_keys = self.strings(HEADER_KEYS, column.keys, column.pairs)
        source.header_values = self.strings(HEADER_VALUES, column.values, column.pairs)
        return 0

    cdef const uint8_t *int32s(self, object buffer, int64_t *count) except? NULL:
        cdef Py_buffer *held = self.hold(buffer)
        if held.len % 4:
            raise LocalProtocolError(f"{held.len} bytes are not a number of int32")
        count[0] = held.len // 4
        return <const uint8_t *> held.buf


# --- batches

cdef double work_bytes(Body *body, Source *source, int64_t count) noexcept:
    """About how much `count` rows will add: up to the limit, or one row of any size."""
    cdef double row = 0
    if source.rows:
        row = (<double> source.key.data_size + source.value.data_size) / source.rows
    return max(row, min(row * count, <double> body.limit))


cdef object snapped(const uint8_t *data, size_t size):
    """The stream of snappy that `compression.compress` could have made, in less time."""
    cdef size_t written
    cdef uint8_t *stream
    cdef uint16_t *places = <uint16_t *> malloc(MOST_PLACES * sizeof(uint16_t) + stream_room(size))
    if places == NULL:
        raise MemoryError()
    stream = <uint8_t *> (places + MOST_PLACES)
    try:
        if size < NOGIL_BYTES:
            written = snap(data, size, stream, places)
        else:
            with nogil:
                written = snap(data, size, stream, places)
        return PyBytes_FromStringAndSize(<char *> stream, written)
    finally:
        free(places)


cdef class BatchBuilder:
    """Grows one record batch; see `reference_write.BatchBuilder`."""

    cdef Body body
    cdef bint is_busy
    cdef int codec
    cdef object level
    cdef object content  # compressed ahead of its time; None

    def __init__(self, *, codec=0, level=None, limit_bytes):
        _writing.check_settings(codec, level, limit_bytes)
        self.check_idle()
        self.codec = codec
        self.level = level
        self.body.limit = limit_bytes
        self.begin()

    def __dealloc__(self):
        free(self.body.area.data)

    @property
    def rows(self):
        return self.body.rows

    @property
    def size_bytes(self):
        return HEADER_SIZE + self.body.area.used

    cdef void begin(self) noexcept:
        """An empty batch, in the memory of the one before unless a single record blew that up."""
        if <int64_t> self.body.area.capacity > 4 * self.body.limit:
            free(self.body.area.data)
            self.body.area.data = NULL
            self.body.area.capacity = 0
        self.body.area.used = 0
        self.body.rows = 0
        self.body.base_timestamp = self.body.max_timestamp = -1
        self.content = None

    cdef int check_idle(self) except -1:
        if self.is_busy:
            raise LocalProtocolError("a batch builder is used by two threads at once")
        return 0

    def append(self, columns, indices, start, now_ms):
        cdef Held held = Held.__new__(Held)
        cdef Source source
        cdef Outcome outcome
        cdef const uint8_t *order = NULL
        cdef int64_t count
        cdef int64_t first
        cdef int64_t now
        self.check_idle()
        if self.content is not None:
            raise _writing.compressed_already()
        _writing.check_now(now_ms)
        source = held.source(columns)
        count = source.rows
        if indices is not None:
            order = held.int32s(indices, &count)
        _writing.check_start(start, count)
        first = start
        now = now_ms
        if work_bytes(&self.body, &source, count - first) < NOGIL_BYTES:
            outcome = append_rows(&self.body, &source, order, first, count, now)
        else:
            self.is_busy = True
            with nogil:
                outcome = append_rows(&self.body, &source, order, first, count, now)
            self.is_busy = False
        if unlikely(outcome.refused.fault):
            raise refusal(&outcome)
        return outcome.position

    def compress(self):
        self.check_idle()
        if self.content is not None:
            return
        self.is_busy = True  # compression gives way to other threads
        try:
            self.content = self.compressed()
        finally:
            self.is_busy = False

    cdef object compressed(self):
        if self.codec == SNAPPY and self.body.rows:
            return snapped(self.body.area.data, self.body.area.used)
        content = None
        records = memoryview(b"")
        if self.body.rows:
            records = PyMemoryView_FromMemory(
                <char *> self.body.area.data, self.body.area.used, PyBUF_READ
            )
        try:
            content = _writing.compressed(
                records, rows=self.body.rows, codec=self.codec, level=self.level
            )
            return content
        finally:
            if content is not records:
                records.release()  # the memory below it is used again

    def finish(
        self, *, producer_id=-1, producer_epoch=-1, base_sequence=-1, is_transactional=False
    ):
        self.compress()
        content = self.content
        self.is_busy = True  # so does the CRC
        try:
            batch = _writing.sealed_batch(
                content,
                rows=self.body.rows,
                base_timestamp_ms=self.body.base_timestamp,
                max_timestamp_ms=self.body.max_timestamp,
                codec=self.codec,
                producer=_writing.ProducerFields(
                    producer_id, producer_epoch, base_sequence, is_transactional
                ),
            )
        finally:
            self.is_busy = False
        if isinstance(content, memoryview):
            content.release()  # the memory below it is used again
        self.begin()
        return batch


cdef object refusal(Outcome *outcome):
    if outcome.refused.fault == NO_MEMORY:
        return MemoryError()
    return _writing.refusal(
        outcome.refused.fault,
        row=outcome.row,
        position=outcome.position,
        detail=outcome.refused.detail,
    )


# --- partitions

cdef Crc32Tables crc32_tables
fill_crc32_tables(&crc32_tables)


cdef uint32_t murmur2(const uint8_t *data, int64_t size) noexcept nogil:
    """Java's `Utils.murmur2`; the parts are little-endian on any machine."""
    cdef uint32_t factor = 0x5BD1E995
    cdef uint32_t hashed = <uint32_t> 0x9747B28C ^ <uint32_t> size
    cdef uint32_t part
    cdef int64_t whole = size & ~<int64_t> 3
    cdef int64_t pos
    for pos in range(0, whole, 4):
        part = little_uint32_at(data + pos) * factor
        hashed = hashed * factor ^ (part ^ part >> 24) * factor
    if whole < size:
        for pos in range(whole, size):
            hashed ^= <uint32_t> data[pos] << 8 * (pos - whole)
        hashed *= factor
    hashed = (hashed ^ hashed >> 13) * factor
    return hashed ^ hashed >> 15


cdef int64_t place_keys(
    Strings *keys, int64_t rows, uint32_t partitions, bint is_murmur2, int32_t *placed,
    Refused *refused
) noexcept nogil:
    """The partition of each row, -1 for none; the row with a fault, or how many there are."""
    cdef int64_t row
    cdef Span key
    cdef const uint8_t *data
    for row in range(rows):
        key = span_of(keys, KEY, row, refused)
        if unlikely(refused.fault):
            return row
        data = keys.data + key.begin
        if key.size < 0 or (key.size == 0 and not is_murmur2):
            placed[row] = -1  # librdkafka takes an empty key for none
        elif is_murmur2:
            placed[row] = <int32_t> ((murmur2(data, key.size) & 0x7FFFFFFF) % partitions)
        else:
            placed[row] = <int32_t> (crc32(&crc32_tables, data, data + key.size) % partitions)
    return rows


def partition_keys(columns, partitions, partitioner):
    """The partition of each key; see `pyspark_kafkaproto.records.partition_keys`."""
    cdef Held held = Held.__new__(Held)
    cdef array.array placed
    cdef Strings keys
    cdef Refused refused
    cdef int64_t rows
    cdef int64_t row
    cdef uint32_t count
    cdef bint is_murmur2
    _writing.check_partitioning(partitions, partitioner)
    _writing.check_place("the columns", 0, columns.rows)
    keys = held.strings(KEY, columns.key, columns.rows)
    rows = columns.rows
    count = partitions
    is_murmur2 = partitioner == _writing.MURMUR2
    placed = array.clone(NO_ROWS, rows, zero=False)
    refused.fault = SOUND
    with nogil:
        row = place_keys(&keys, rows, count, is_murmur2, <int32_t *> placed.data.as_ints, &refused)
    if unlikely(refused.fault):
        raise _writing.refusal(refused.fault, row=row, position=row, detail=refused.detail)
    return placed


cdef int64_t count_rows(
    const uint8_t *placed, int64_t rows, int32_t partitions, int32_t *starts
) noexcept nogil:
    """Where each partition's rows begin; the first row that is in none, or how many there are."""
    cdef int64_t row
    cdef int32_t partition
    memset(starts, 0, sizeof(int32_t) * (<size_t> partitions + 1))
    for row in range(rows):
        partition = int32_of(placed, row)
        if unlikely(partition < 0 or partition >= partitions):
            return row
        starts[partition + 1] += 1
    for partition in range(partitions):
        starts[partition + 1] += starts[partition]
    return rows


cdef void sort_rows(
    const uint8_t *placed, int64_t rows, int32_t *next_of, int32_t *indices
) noexcept nogil:
    cdef int64_t row
    cdef int32_t partition
    for row in range(rows):
        partition = int32_of(placed, row)
        indices[next_of[partition]] = <int32_t> row
        next_of[partition] += 1


def group_rows(partition_of_row, partitions):
    """Rows by partition; see `pyspark_kafkaproto.records.group_rows`."""
    cdef Held held = Held.__new__(Held)
    cdef array.array indices
    cdef array.array starts
    cdef array.array next_of
    cdef int64_t rows
    cdef int64_t row
    cdef int32_t count
    cdef const uint8_t *placed
    _writing.check_partitioning(partitions, _writing.MURMUR2)
    placed = held.int32s(partition_of_row, &rows)
    _writing.check_numbering(rows)
    count = partitions
    starts = array.clone(NO_ROWS, <Py_ssize_t> count + 1, zero=False)
    row = count_rows(placed, rows, count, <int32_t *> starts.data.as_ints)
    if unlikely(row < rows):
        raise _writing.no_partition(row, int32_of(placed, row), partitions)
    indices = array.clone(NO_ROWS, rows, zero=False)
    next_of = array.copy(starts)
    sort_rows(placed, rows, <int32_t *> next_of.data.as_ints, <int32_t *> indices.data.as_ints)
    return indices, starts
