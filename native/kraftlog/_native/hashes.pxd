from kraftlog._native.c_hash cimport kr_large_values
from kraftlog._native.memory cimport Input


cdef class Values:
    cdef kr_large_values state
    cdef object ends
    cdef Input data
