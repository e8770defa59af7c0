"""Declarations of native/c/cleaning/*.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kraftlog._native.c_key_fold cimport kr_key_slots
from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_message cimport kr_growing
from kraftlog._native.c_record cimport kr_record


cdef extern from "cleaning/offset_map.h" nogil:
    ctypedef struct kr_offset_map:
        kr_key_slots slots

    int kr_offset_map_open(kr_offset_map *m, uint64_t seed, int64_t most_bytes)
    void kr_offset_map_close(kr_offset_map *m)
    int64_t kr_offset_map_put(kr_offset_map *m, const kr_lent_binary *keys, const int64_t *offsets, const uint8_t *wanted,
                              int64_t row, int64_t end)
    void kr_offset_map_superseded(const kr_offset_map *m, const kr_lent_binary *keys, const int64_t *offsets, int64_t n,
                                  uint8_t *is_superseded)


cdef extern from "cleaning/kept_records.h" nogil:
    ctypedef struct kr_filter:
        const uint8_t *records
        int64_t size
        const uint8_t *keeps
        int64_t count
        int64_t base_timestamp

    ctypedef struct kr_kept:
        int64_t kept
        int64_t size
        int64_t base_timestamp
        int64_t max_timestamp

    int kr_kept_measure(const kr_filter *f, int is_given, int64_t given, kr_kept *k)
    void kr_kept_write(const kr_filter *f, const kr_kept *k, uint8_t *to)


cdef extern from "cleaning/rewritten_records.h" nogil:
    ctypedef struct kr_content:
        const uint8_t *bytes
        int64_t size

    ctypedef struct kr_whole_record:
        kr_record fields
        uint8_t attributes

    const uint8_t *kr_whole_record_read(const uint8_t *p, const uint8_t *end, kr_whole_record *r)
    int kr_record_rewrite(kr_growing *out, const kr_whole_record *r, const kr_content *contents, int32_t headers)
