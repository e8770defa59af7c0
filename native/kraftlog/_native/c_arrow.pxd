"""Declarations of native/c/arrow_array.h and the columns that are made beside those of the decoder."""

from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_decoder cimport kr_batch_header, kr_binary_column, kr_columns
from kraftlog._native.c_memory cimport kr_block


cdef extern from "arrow_array.h" nogil:
    struct ArrowArray:
        ArrowArray **children
        void (*release)(ArrowArray *)

    ctypedef struct kr_viewed:
        const uint8_t *bytes
        int64_t size
        void *owner
        void (*share)(void *owner) noexcept nogil
        void (*close)(void *owner) noexcept nogil

    void kr_array_cut(ArrowArray *array, int64_t start, int64_t rows)
    int kr_array_of_views(ArrowArray *array, kr_block *block, int64_t rows, const kr_binary_column *c,
                          const kr_viewed *viewed)
    int kr_array_of_numbers(ArrowArray *array, kr_block *block, int64_t rows, const void *values,
                            const uint8_t *validity, int64_t nulls)
    int kr_array_of_binary(ArrowArray *array, kr_block *block, int64_t rows, const kr_binary_column *c)
    int kr_array_of_rows(ArrowArray *array, int64_t rows, int columns)
    int kr_array_of_headers(ArrowArray *array, kr_block *block, const kr_columns *c)


cdef extern from "timestamp_type.h" nogil:
    enum:
        KR_TIMESTAMP_TYPES
        KR_SHARED_ROWS

    const char *kr_timestamp_types[]

    int kr_timestamp_type_column(ArrowArray *array, const kr_batch_header *batches, int64_t n, int64_t start,
                                 int64_t rows)
