"""Declarations of native/c/arrow/array.h."""

from libc.stdint cimport int64_t


cdef extern from "arrow/array.h" nogil:
    struct ArrowArray:
        ArrowArray **children
        void (*release)(ArrowArray *)

    int kr_array_of_rows(ArrowArray *array, int64_t rows, int columns)
