from libc.stdint cimport int32_t, int64_t

from kraftlog._native.c_encoder cimport kr_encoder, kr_record_lists, kr_source
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_memory cimport kr_busy
from kraftlog._native.memory cimport Arena, Input
from kraftlog._native.text_column cimport TextColumn


cdef class Source:
    cdef kr_source state
    cdef list held

    cdef int _binary(self, kr_lent_binary *c, TextColumn column, int64_t first, int64_t count) except -1
    cdef int64_t size(self) noexcept


cdef class Encoder:
    cdef kr_busy busy
    cdef kr_encoder state
    cdef Arena arena
    cdef Input plan

    cdef int _reserve(self, int64_t more) except -1
    cdef int64_t _overhead(self, int64_t rows) noexcept
    cdef object _write(self, const kr_source *source, int64_t more, int64_t rows_done)
    cdef bint _write_lists(self, Source source, int64_t done, int64_t rows, int64_t marker_bytes,
                           kr_record_lists *lists) except -1
