from libc.stdint cimport int32_t, int64_t

from kraftlog._native.c_memory cimport kr_busy
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_message cimport kr_growing, kr_message_decoder, kr_program, kr_straight
from kraftlog._native.memory cimport Input


cdef class Grown:
    cdef kr_growing grown

    @staticmethod
    cdef Grown take(kr_growing *source)


cdef class Program:
    cdef kr_program program
    cdef Input fields, text
    cdef readonly int columns


cdef class Programs:
    cdef kr_program *programs
    cdef list held
    cdef kr_straight *straight
    cdef readonly int columns
    cdef int32_t first


cdef class Values:
    cdef Input data, ends, valid
    cdef kr_lent_binary values
    cdef readonly int64_t count


cdef class Columns:
    cdef kr_message_decoder state
    cdef int count
    cdef bint is_open
    cdef kr_busy busy
    cdef Programs programs  # of what was decoded

    cdef list _decode(self, Programs programs, Values values, const int64_t[::1] rows, const int32_t[::1] starts,
                      const int32_t[::1] versions)


cdef list faults_of(kr_message_decoder *d)
