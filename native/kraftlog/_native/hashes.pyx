"""A number for each value of a column of binary: the hashes that place keys and groups, and checksums."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_hash cimport (
    kr_crc32c_column,
    kr_hash_code_column,
    kr_murmur2_column,
)
from kraftlog._native.c_lent cimport kr_lent_out_of_bounds
from kraftlog._native.memory cimport Input

kr_crc_init()


cdef class Values:
    """The values of a column, of which there is one less than ``ends``; both buffers are held."""

    def __init__(self, const int64_t[::1] ends not None, data):
        if ends.shape[0] < 1:
            raise ValueError("ends has no values; that of a column without rows has one")
        self.ends = ends
        self.data = Input(data)
        self.state.rows = ends.shape[0] - 1
        self.state.ends = &ends[0]
        self.state.data = self.data.data
        self.state.data_size = self.data.size
        cdef int64_t bad
        with nogil:
            bad = kr_lent_out_of_bounds(&self.state)
        if bad >= 0:
            raise ValueError(f"value {bad} is from byte {ends[bad]} to {ends[bad + 1]}, but the data has "
                             f"{self.data.size} bytes")

    def murmur2(self):
        out = np.empty(self.state.rows, np.int32)
        cdef int32_t[::1] view = out
        cdef int32_t *target = &view[0] if self.state.rows else NULL
        with nogil:
            kr_murmur2_column(&self.state, target)
        return out

    def hash_code(self):
        out = np.empty(self.state.rows, np.int32)
        cdef int32_t[::1] view = out
        cdef int32_t *target = &view[0] if self.state.rows else NULL
        with nogil:
            kr_hash_code_column(&self.state, target)
        return out

    def crc32c(self):
        out = np.empty(self.state.rows, np.int64)
        cdef int64_t[::1] view = out
        cdef int64_t *target = &view[0] if self.state.rows else NULL
        with nogil:
            kr_crc32c_column(&self.state, target)
        return out
