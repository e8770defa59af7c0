"""Declarations of native/c/record/chunk.h and of the column that is made from the headers of batches."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from kraftlog._native.c_arrow cimport ArrowArray
from kraftlog._native.c_decoder cimport kr_columns
from kraftlog._native.c_memory cimport kr_block


cdef extern from "arrow/array.h" nogil:
    ctypedef struct kr_viewed:
        const uint8_t *bytes
        int64_t size
        void *owner
        void (*share)(void *owner) noexcept nogil
        void (*close)(void *owner) noexcept nogil


cdef extern from "record/timestamp_type.h" nogil:
    enum:
        KR_TIMESTAMP_TYPES
        KR_SHARED_ROWS
        KR_MOST_NAMED_ROWS

    const char *kr_timestamp_types[]


cdef extern from "record/chunk.h" nogil:
    enum:
        KR_BATCHES
        KR_TIMESTAMP_TYPE

    ctypedef struct kr_chunk:
        kr_columns columns
        uint32_t want
        kr_viewed viewed
        int64_t size
        kr_block *block[]

    int64_t kr_chunk_open(kr_chunk *chunk, kr_columns *c, uint32_t want)
    void kr_chunk_close(kr_chunk *chunk)
    int kr_chunk_has(const kr_chunk *chunk, int column)
    int kr_chunk_array(ArrowArray *array, const kr_chunk *chunk, int column, int64_t start, int64_t rows)
