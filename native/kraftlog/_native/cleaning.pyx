"""What the log cleaner does to each record: the last offsets of keys, and batches with some of their records."""

import numpy as np

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kraftlog._native.c_cleaning cimport (
    kr_filter,
    kr_kept,
    kr_kept_measure,
    kr_kept_write,
    kr_offset_map,
    kr_offset_map_close,
    kr_offset_map_open,
    kr_offset_map_put,
    kr_offset_map_superseded,
)
from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.memory cimport shared_pool
from kraftlog._native.message cimport Values

kr_pool_use(shared_pool())


cdef class OffsetMap:
    """The last offset of each key, in at most so many bytes; one thread uses it at a time."""

    cdef kr_offset_map state

    def __cinit__(self, uint64_t seed, int64_t most_bytes):
        memset(&self.state, 0, sizeof(self.state))
        if not kr_offset_map_open(&self.state, seed, most_bytes):
            raise MemoryError("no memory for keys")

    def __dealloc__(self):
        kr_offset_map_close(&self.state)

    def put(self, Values keys not None, const int64_t[::1] offsets not None, const uint8_t[::1] wanted not None,
            int64_t row):
        """Takes the keys of wanted rows from ``row`` on. Returns the row whose key has no room, or the number of rows.
        """
        cdef int64_t n = keys.count
        if offsets.shape[0] != n or wanted.shape[0] != n or not 0 <= row <= n:
            raise ValueError(f"row {row} of {n} keys, {offsets.shape[0]} offsets and {wanted.shape[0]} wanted rows")
        if row == n:
            return n
        with nogil:
            row = kr_offset_map_put(&self.state, &keys.values, &offsets[0], &wanted[0], row, n)
        if self.state.slots.no_memory:
            raise MemoryError("no memory for the last offsets of all keys")
        return row

    def superseded(self, Values keys not None, const int64_t[::1] offsets not None):
        """Says of each row whether its key is here at a later offset."""
        cdef int64_t n = keys.count
        found = np.zeros(n, np.bool_)
        cdef uint8_t[::1] view = found.view(np.uint8)
        if offsets.shape[0] != n:
            raise ValueError(f"{n} keys, but {offsets.shape[0]} offsets")
        if n:
            with nogil:
                kr_offset_map_superseded(&self.state, &keys.values, &offsets[0], n, &view[0])
        return found


def kept_records(const uint8_t[::1] records not None, const uint8_t[::1] keeps not None, int64_t base_timestamp,
                 delete_horizon_ms, int64_t room):
    """The records of a batch that stay, behind ``room`` bytes, with their number, base timestamp and largest timestamp.

    Their base timestamp is the delete horizon, or without one that of the first of them.
    """
    cdef kr_filter f
    cdef kr_kept k
    cdef bint is_given = delete_horizon_ms is not None
    cdef int64_t given = delete_horizon_ms if is_given else 0
    cdef bint is_measured
    cdef uint8_t *to
    if room < 0:
        raise ValueError(f"room of {room} bytes")
    memset(&f, 0, sizeof(f))
    memset(&k, 0, sizeof(k))
    f.size, f.count, f.base_timestamp = records.shape[0], keeps.shape[0], base_timestamp
    if f.size:
        f.records = &records[0]
    if f.count:
        f.keeps = &keeps[0]
    with nogil:
        is_measured = kr_kept_measure(&f, is_given, given, &k)
    if not is_measured:
        raise ValueError(f"{f.size} bytes are not {f.count} records of which some are kept")
    out = PyByteArray_FromStringAndSize(NULL, room + k.size)
    to = <uint8_t *>PyByteArray_AS_STRING(out) + room
    with nogil:
        kr_kept_write(&f, &k, to)
    return out, k.kept, k.base_timestamp, k.max_timestamp
