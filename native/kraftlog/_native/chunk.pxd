from libc.stdint cimport int64_t

from kraftlog._native.c_arrow cimport ArrowArray
from kraftlog._native.c_chunk cimport kr_chunk
from kraftlog._native.c_decoder cimport kr_columns
from kraftlog._native.memory cimport Input


cdef class Chunk:
    cdef kr_chunk state
    cdef Input source

    cdef int open(self, kr_columns *c, int want) except -1
    cdef void close(self, kr_columns *c, Input source, int64_t source_end)
    cdef int export(self, ArrowArray *out, int column, int64_t start, int64_t rows) except -1
    cdef object part(self, int part, void *begin, int64_t size)
