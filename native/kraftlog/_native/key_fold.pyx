"""The last record of each key of a coordinator's topic: owns the slots that native/c/coordinator/key_fold.h fills."""

import numpy as np

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kraftlog._native.c_key_fold cimport (
    KR_FOLD_IGNORED,
    KR_FOLD_IN_TRANSACTION,
    KR_FOLD_LAST,
    KR_GROUP_MADE,
    KR_GROUP_REMOVED,
    KR_GROUP_UNTOUCHED,
    KR_MOST_FOLD_TYPES,
    KR_NOT_IN_TRANSACTION,
    kr_fold_columns,
    kr_fold_copy,
    kr_fold_count,
    kr_fold_expect,
    kr_fold_markers,
    kr_fold_markers_before,
    kr_fold_odd_rows,
    kr_fold_rows,
    kr_fold_rows_from,
    kr_fold_type,
    kr_key_fold,
    kr_key_fold_close,
    kr_key_slots_open,
)
from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.memory cimport shared_pool
from kraftlog._native.message cimport Programs, Values

kr_pool_use(shared_pool())

IGNORED, LAST, IN_TRANSACTION = KR_FOLD_IGNORED, KR_FOLD_LAST, KR_FOLD_IN_TRANSACTION
UNTOUCHED, MADE, REMOVED = KR_GROUP_UNTOUCHED, KR_GROUP_MADE, KR_GROUP_REMOVED
NOT_IN_TRANSACTION = KR_NOT_IN_TRANSACTION
MOST_TYPES = KR_MOST_FOLD_TYPES
_MOST_BYTES = 2**31 - 1  # of a column of binary


cdef class Markers:
    """The transaction markers of a stretch of the log, in the order of their offsets."""

    cdef kr_fold_markers state
    cdef object held

    def __init__(self, const int64_t[::1] offsets not None, const int64_t[::1] producer_ids not None,
                 const uint8_t[::1] is_commit not None):
        cdef int64_t n = offsets.shape[0]
        if producer_ids.shape[0] != n or is_commit.shape[0] != n:
            raise ValueError("a producer id and an end are needed for each marker")
        memset(&self.state, 0, sizeof(self.state))
        self.state.n = n
        self.held = offsets, producer_ids, is_commit
        if n:
            self.state.offsets = &offsets[0]
            self.state.producer_ids = &producer_ids[0]
            self.state.is_commit = &is_commit[0]


cdef class Rows:
    """Records in the order of the log; those that are checked have no odd ones among them."""

    cdef kr_fold_rows state
    cdef object held
    cdef readonly int64_t count

    def __init__(self, Values keys not None, Values values not None, const int64_t[::1] offsets not None,
                 const int64_t[::1] producer_ids not None, bint is_checked):
        cdef int64_t n = offsets.shape[0]
        if keys.count != n or values.count != n or producer_ids.shape[0] != n:
            raise ValueError("a key, a value, an offset and a producer id are needed for each record")
        memset(&self.state, 0, sizeof(self.state))
        self.count = self.state.n = n
        self.held = keys, values, offsets, producer_ids
        self.state.keys = keys.values
        self.state.values = values.values
        self.state.is_checked = is_checked
        if n:
            self.state.offsets = &offsets[0]
            self.state.producer_ids = &producer_ids[0]


cdef class KeyFold:
    """The last record of each key, of so many types."""

    cdef kr_key_fold state
    cdef list held

    def __cinit__(self, uint64_t seed, int16_t group_type):
        """``group_type`` is the type of the slots of groups, below zero for none."""
        memset(&self.state, 0, sizeof(self.state))
        self.held = []
        self.state.group_type = group_type
        if not kr_key_slots_open(&self.state.slots, seed):
            raise MemoryError("no memory for keys")

    def __dealloc__(self):
        kr_key_fold_close(&self.state)

    def expect(self, int32_t api_key, int32_t rule, int16_t same_as, int32_t group, Programs key not None,
               Programs values not None):
        """Says what is done with the records of a type. The keys that mean the same are of the same form."""
        cdef kr_fold_type of_type
        memset(&of_type, 0, sizeof(of_type))
        if not 0 <= api_key < KR_MOST_FOLD_TYPES or len(key.held) != 1:
            raise ValueError(f"type {api_key} is not one below {KR_MOST_FOLD_TYPES} with one version of keys")
        self.held.append((key, values))
        of_type.rule = rule
        of_type.same_as = same_as
        of_type.group = group
        of_type.first_version = values.first
        of_type.versions = len(values.held)
        of_type.key = key.programs
        of_type.values = values.programs
        if not kr_fold_expect(&self.state, api_key, &of_type):
            raise MemoryError("no memory for the shapes of values")

    def add(self, Rows rows not None, int64_t first, Markers markers not None):
        """Folds rows from ``first`` on, and the markers between them. Returns the row at which it stops, which is odd,
        or the number of rows."""
        cdef int64_t at
        with nogil:
            at = kr_fold_rows_from(&self.state, &rows.state, first, &markers.state)
        self._check()
        return at

    def add_markers(self, Markers markers not None):
        """Folds the markers that are left."""
        with nogil:
            kr_fold_markers_before(&self.state.slots, &markers.state, INT64_MAX)
        self._check()

    def odd_rows(self, Rows rows not None, int64_t first):
        """Which rows from ``first`` on are odd."""
        is_odd = np.zeros(rows.count, np.uint8)
        cdef uint8_t[::1] view = is_odd
        if rows.count:
            with nogil:
                kr_fold_odd_rows(&self.state, &rows.state, first, &view[0])
        return np.flatnonzero(is_odd)

    def columns(self, int32_t api_key):
        """What is left of a type: offsets, producer ids, and ends and bytes of keys and of values."""
        cdef int64_t rows, key_bytes, value_bytes
        cdef kr_fold_columns to
        kr_fold_count(&self.state, api_key, &rows, &key_bytes, &value_bytes)
        if key_bytes > _MOST_BYTES or value_bytes > _MOST_BYTES:
            raise MemoryError(f"{key_bytes} bytes of keys and {value_bytes} of values do not fit columns")
        offsets, producer_ids = np.empty(rows, np.int64), np.empty(rows, np.int64)
        key_ends, value_ends = np.empty(rows + 1, np.int32), np.empty(rows + 1, np.int32)
        keys, values = np.empty(max(key_bytes, 1), np.uint8), np.empty(max(value_bytes, 1), np.uint8)
        cdef int64_t[::1] offsets_view = offsets, producer_ids_view = producer_ids
        cdef int32_t[::1] key_ends_view = key_ends, value_ends_view = value_ends
        cdef uint8_t[::1] keys_view = keys, values_view = values
        to.offsets = &offsets_view[0] if rows else NULL
        to.producer_ids = &producer_ids_view[0] if rows else NULL
        to.key_ends, to.value_ends = &key_ends_view[0], &value_ends_view[0]
        to.keys, to.values = &keys_view[0], &values_view[0]
        kr_fold_copy(&self.state, api_key, &to)
        return offsets, producer_ids, (key_ends, keys), (value_ends, values)

    def _check(self):
        if self.state.slots.no_memory:
            raise MemoryError("no memory for the last records of all keys")
