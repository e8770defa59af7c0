from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_arrow cimport ArrowArray
from kraftlog._native.c_decoder cimport kr_binary_column, kr_columns
from kraftlog._native.c_memory cimport kr_block
from kraftlog._native.memory cimport Input

cdef enum:
    MOST_PARTS = 10  # the bits of kr_want, and the headers of batches


cdef class Chunk:
    cdef kr_columns columns
    cdef int want
    cdef kr_block *blocks[MOST_PARTS]
    cdef uint8_t *base
    cdef int64_t used, size
    cdef Input source
    cdef int64_t source_end

    cdef int open(self, kr_columns *c, int want) except -1
    cdef int64_t size_of(self, kr_columns *c, int parts)
    cdef int open_parts(self, kr_columns *c, int parts) except -1
    cdef void lay_out(self, kr_columns *c, int parts)
    cdef void *region(self, int64_t size)
    cdef void viewed(self, kr_binary_column *c, kr_columns *of)
    cdef void binary(self, kr_binary_column *c, int64_t rows, int64_t data)
    cdef kr_block *block_of(self, int part) noexcept
    cdef int export_binary(self, ArrowArray *out, kr_block *block, kr_binary_column *c)
    cdef int export(self, ArrowArray *out, int column, int64_t start, int64_t rows) except -1
    cdef object part(self, int part, void *begin, int64_t size)
