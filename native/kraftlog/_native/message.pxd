from libc.stdint cimport int32_t, int64_t

from kraftlog._native.c_message cimport kr_program, kr_straight, kr_values
from kraftlog._native.memory cimport Input


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
    cdef kr_values values
    cdef readonly int64_t count
