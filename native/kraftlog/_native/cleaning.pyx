"""What the log cleaner does to each record: the last offsets of keys, and batches with some of their records."""

import numpy as np

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kraftlog._native.c_cleaning cimport (
    kr_content,
    kr_filter,
    kr_kept,
    kr_kept_measure,
    kr_kept_write,
    kr_offset_map,
    kr_offset_map_close,
    kr_offset_map_open,
    kr_offset_map_put,
    kr_offset_map_superseded,
    kr_record_rewrite,
    kr_whole_record,
    kr_whole_record_read,
)
from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.c_message cimport kr_growing, kr_growing_free, kr_reserve
from kraftlog._native.c_record cimport bytes_or_none, kr_header_fast
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


cdef tuple _fields_of(const kr_whole_record *r):
    """Key, value, and names and values of headers."""
    cdef const uint8_t *p = r.fields.headers
    cdef const uint8_t *name = NULL
    cdef const uint8_t *value = NULL
    cdef int32_t name_size = 0, value_size = 0
    headers = []
    for _ in range(r.fields.headers_count):
        p = kr_header_fast(p, r.fields.end, &name, &name_size, &value, &value_size)
        headers.append((bytes_or_none(name, name_size), bytes_or_none(value, value_size)))
    key = bytes_or_none(r.fields.key, r.fields.key_length)
    return key, bytes_or_none(r.fields.value, r.fields.value_length), headers


cdef int _add_content(kr_growing *contents, bytes given) except -1:
    cdef kr_content *c
    if not kr_reserve(contents, sizeof(kr_content)):
        raise MemoryError("no memory for a record")
    c = <kr_content *>(contents.bytes + contents.size)
    c.bytes = NULL if given is None else <const uint8_t *>PyBytes_AS_STRING(given)
    c.size = -1 if given is None else PyBytes_GET_SIZE(given)
    contents.size += sizeof(kr_content)
    return 0


cdef int _rewrite(kr_growing *out, kr_growing *contents, const kr_whole_record *r, fields) except -1:
    key, value, headers = fields
    if len(headers) > INT32_MAX:
        raise ValueError(f"a record cannot have {len(headers)} headers")
    contents.size = 0
    _add_content(contents, key)
    _add_content(contents, value)
    for name, content in headers:
        _add_content(contents, name)
        _add_content(contents, content)
    if not kr_record_rewrite(out, r, <kr_content *>contents.bytes, <int32_t>len(headers)):
        raise MemoryError("no memory for records, or they are too large for a batch")
    return 0


def rewritten_records(const uint8_t[::1] records not None, change, int64_t room):
    """The records of a batch behind ``room`` bytes, with the keys, values and headers that ``change`` returns for those
    that they have: a list of (key, value, [(name, value)]). All else of them stays."""
    cdef kr_whole_record r
    cdef kr_growing out, contents
    cdef const uint8_t *start = &records[0] if records.shape[0] else NULL
    cdef const uint8_t *end = start + records.shape[0]
    cdef const uint8_t *p = start
    cdef const uint8_t *behind
    if room < 0:
        raise ValueError(f"room of {room} bytes")
    before = []
    while p < end:
        behind = kr_whole_record_read(p, end, &r)
        if behind == NULL:
            raise ValueError(f"no sound record at byte {p - start} of {end - start}")
        before.append(_fields_of(&r))
        p = behind
    after = change(before)
    if len(after) != len(before):
        raise ValueError(f"{len(before)} records became {len(after)}")
    memset(&out, 0, sizeof(out))
    memset(&contents, 0, sizeof(contents))
    try:
        if not kr_reserve(&out, room):
            raise MemoryError("no memory for records")
        memset(out.bytes, 0, room)
        out.size = room
        p = start
        for fields in after:
            p = kr_whole_record_read(p, end, &r)
            _rewrite(&out, &contents, &r, fields)
        return PyByteArray_FromStringAndSize(<const char *>out.bytes, out.size)
    finally:
        kr_growing_free(&out)
        kr_growing_free(&contents)
