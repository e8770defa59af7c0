"""Declarations of native/c/arrow/lent.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "arrow/lent.h" nogil:
    ctypedef struct kr_lent_binary:
        const int32_t *ends
        const uint8_t *data
        int64_t data_size
        const uint8_t *validity
        int64_t validity_at

    ctypedef struct kr_lent_large:
        int64_t rows
        const int64_t *ends
        const uint8_t *data
        int64_t data_size

    int64_t kr_lent_out_of_bounds(const kr_lent_large *v)
