"""Declarations of native/c/coordinator/key_fold.h and base/key_slots.h."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

from kraftlog._native.c_lent cimport kr_lent_binary
from kraftlog._native.c_message cimport kr_program


cdef extern from "base/key_slots.h" nogil:
    enum:
        KR_NOT_IN_TRANSACTION

    ctypedef struct kr_key_slots:
        int no_memory

    int kr_key_slots_open(kr_key_slots *s, uint64_t seed)


cdef extern from "coordinator/key_fold.h" nogil:
    enum:
        KR_MOST_FOLD_TYPES
        KR_FOLD_UNKNOWN
        KR_FOLD_IGNORED
        KR_FOLD_LAST
        KR_FOLD_IN_TRANSACTION
        KR_GROUP_UNTOUCHED
        KR_GROUP_MADE
        KR_GROUP_REMOVED

    ctypedef struct kr_fold_type:
        int32_t rule
        int16_t same_as
        int32_t group
        int32_t first_version
        int32_t versions
        const kr_program *key
        const kr_program *values

    ctypedef struct kr_key_fold:
        kr_key_slots slots
        int16_t group_type

    ctypedef struct kr_fold_markers:
        const int64_t *offsets
        const int64_t *producer_ids
        const uint8_t *is_commit
        int64_t n
        int64_t next

    ctypedef struct kr_fold_rows:
        kr_lent_binary keys
        kr_lent_binary values
        const int64_t *offsets
        const int64_t *producer_ids
        int64_t n
        int is_checked

    ctypedef struct kr_fold_columns:
        int64_t *offsets
        int64_t *producer_ids
        int32_t *key_ends
        int32_t *value_ends
        uint8_t *keys
        uint8_t *values

    void kr_key_fold_close(kr_key_fold *f)
    int kr_fold_expect(kr_key_fold *f, int32_t api_key, const kr_fold_type *of_type)
    void kr_fold_markers_before(kr_key_slots *s, kr_fold_markers *m, int64_t offset)
    int64_t kr_fold_rows_from(kr_key_fold *f, const kr_fold_rows *r, int64_t start, kr_fold_markers *m)
    void kr_fold_odd_rows(const kr_key_fold *f, const kr_fold_rows *r, int64_t start, uint8_t *is_odd)
    void kr_fold_count(const kr_key_fold *f, int32_t type, int64_t *rows, int64_t *key_bytes, int64_t *value_bytes)
    void kr_fold_copy(const kr_key_fold *f, int32_t type, kr_fold_columns *to)
