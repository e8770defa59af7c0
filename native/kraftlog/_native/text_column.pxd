from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_text_column cimport kr_lent_buffer, kr_lent_list, kr_text_column, kr_text_error
from kraftlog._native.memory cimport Arena


cdef class TextColumn:
    cdef kr_text_column state
    cdef kr_lent_buffer single
    cdef kr_lent_buffer *data
    cdef kr_lent_buffer *more  # where there is not just one
    cdef list held
    cdef object lenders  # of the data of views
    cdef object error  # of the one that does not lend
    cdef readonly bint is_lent
    cdef readonly object fault
    cdef int64_t sound_first, sound_count, sound_bytes  # rows that were measured: what they hold lies in the buffers

    cdef int _check(self, int64_t first, int64_t count) except -1
    cdef int64_t _measured(self, int64_t first, int64_t count, int64_t most, int64_t *size, kr_text_error *error) except -2
    cdef object fill(self, kr_lent_binary *c, int64_t first, int64_t count)


cdef class ListColumn:
    cdef kr_lent_list state
    cdef list held
    cdef readonly object fault

    cdef int _check(self, int64_t first, int64_t count) except -1
