from libc.stdint cimport int64_t, uint8_t
from cpython.buffer cimport Py_buffer


cdef class Input:
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef int64_t size


cdef class Arena:
    cdef uint8_t *data
    cdef int64_t capacity
    cdef int64_t size
