from kraftlog._native.c_lent cimport kr_lent_large
from kraftlog._native.memory cimport Input


cdef class Values:
    cdef kr_lent_large state
    cdef object ends
    cdef Input data
