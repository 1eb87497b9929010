"""Small batches unpacked with no step in Python, and no interpreter held.

The packages of lz4 and zstd let the functions of the libraries in them be seen; where they are is
`compression.native_functions`'. Snappy's does not: `_snappy`. Only what is plain and small is
unpacked here. Whatever else there is, and all that is damaged, is for `compression.py`, which knows
what is allowed and says what is wrong. Formats: RFC 8878; lz4_Frame_format.md of the library.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

from pyspark_kafkaproto.records._snappy cimport SLACK, declared_size, unsnap
from pyspark_kafkaproto.records._zstd cimport block_room, is_one_block

cdef enum:
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
    SMALL_BYTES = 64 << 10  # what a library unpacks; beyond, a step in Python is nothing
    SCRATCH_BYTES = 1 << 20  # what a batch may hold
    LZ4F_VERSION = 100

ctypedef size_t (*ZstdDecompress)(
    void *context, void *target, size_t room, const void *source, size_t size
) noexcept nogil
ctypedef size_t (*Lz4Decompress)(
    void *context, void *target, size_t *room, const void *source, size_t *size,
    const void *options,
) noexcept nogil
ctypedef void *(*ZstdCreate)() noexcept nogil
ctypedef size_t (*Lz4Create)(void **context, unsigned int version) noexcept nogil
ctypedef void (*Lz4Reset)(void *context) noexcept nogil
ctypedef size_t (*Free)(void *context) noexcept nogil


cdef struct Unpacker:
    int codec
    void *context
    uint8_t *scratch  # what was unpacked last
    void *decompress
    void *reset  # of lz4
    void *free


cdef inline bint begin(Unpacker *unpacker, void *create) noexcept:
    """A context and memory; False where the system has none. Its functions are set."""
    unpacker.scratch = <uint8_t *> malloc(SCRATCH_BYTES + SLACK)
    if unpacker.codec == SNAPPY:  # needs no context
        return unpacker.scratch != NULL
    if unpacker.codec == ZSTD:
        unpacker.context = (<ZstdCreate> create)()
    elif (<Lz4Create> create)(&unpacker.context, LZ4F_VERSION):
        unpacker.context = NULL
    return unpacker.scratch != NULL and unpacker.context != NULL


cdef inline void end(Unpacker *unpacker) noexcept:
    if unpacker.context != NULL:
        (<Free> unpacker.free)(unpacker.context)
    free(unpacker.scratch)


cdef inline bint may_unpack(int codec, const uint8_t *data, size_t size) noexcept nogil:
    """Whether this is as small, and as plain, as its headers can say."""
    if codec == SNAPPY:
        return declared_size(data, size) <= SCRATCH_BYTES
    return size < SMALL_BYTES and (codec == LZ4 or is_one_block(data, size))


cdef inline Py_ssize_t unpack(
    Unpacker *unpacker, const uint8_t *data, size_t size, size_t limit
) noexcept nogil:
    """How many bytes are in `scratch` now; -1 where more is to be done, or to be said.

    Only of what `may_unpack`.
    """
    cdef size_t room = min(limit, <size_t> SCRATCH_BYTES)
    cdef size_t taken = size
    if unpacker.codec == SNAPPY:
        return unsnap(data, size, unpacker.scratch, room)
    if unpacker.codec == ZSTD:
        room = min(room, block_room(data))
        room = (<ZstdDecompress> unpacker.decompress)(
            unpacker.context, unpacker.scratch, room, data, size
        )
        return -1 if room > SCRATCH_BYTES else <Py_ssize_t> room  # errors are large numbers
    if (<Lz4Decompress> unpacker.decompress)(
        unpacker.context, unpacker.scratch, &room, data, &taken, NULL
    ) or taken != size:
        (<Lz4Reset> unpacker.reset)(unpacker.context)
        return -1
    return <Py_ssize_t> room
