"""Messages of all types in one pass: owns the memory that native/c/message/pass.h and message/keyed_pass.h fill."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from kraftlog._native.c_memory cimport kr_pool_use
from kraftlog._native.c_message cimport (
    KR_KEYED_FAULT,
    KR_KEYED_NO_MEMORY,
    KR_KEYED_TYPES,
    KR_PASS_TYPES,
    kr_growing_free,
    kr_keyed_end,
    kr_keyed_run,
    kr_keyed_type,
    kr_pass_run,
    kr_pass_type,
    kr_side,
    kr_side_begin,
    kr_side_close,
    kr_side_end,
    kr_side_leave,
    kr_uuid_text_init,
)
from kraftlog._native.memory cimport shared_pool
from kraftlog._native.message cimport Columns, Grown, Programs, Values, faults_of

kr_uuid_text_init()
kr_pool_use(shared_pool())


cdef Columns opened_columns(Programs programs, bint uuid_text):
    cdef Columns columns = Columns(programs.columns, uuid_text)
    columns.programs = programs
    return columns


cdef kr_side side_of(Programs programs):
    cdef kr_side side
    memset(&side, 0, sizeof(side))
    side.programs, side.straight = programs.programs, programs.straight
    side.first, side.versions = programs.first, len(programs.held)
    return side


cdef bint has_run(Programs programs):
    return programs.straight != NULL and programs.straight.run != NULL


cdef class Pass:
    """The types of a format; one pass decodes those of which a decoder was generated."""

    cdef kr_pass_type types[KR_PASS_TYPES]
    cdef dict programs

    def __init__(self, dict programs):
        """``programs`` are by api key."""
        cdef Programs of_type
        memset(self.types, 0, sizeof(self.types))
        self.programs = {}
        for api_key, of_type in programs.items():
            if not 0 <= api_key < KR_PASS_TYPES:
                continue
            self.programs[api_key] = of_type
            self.types[api_key].values = side_of(of_type)

    def decode(self, Values values, bint uuid_text, wanted):
        """(api key, columns, rows, faults) of each type; None when there is a value that it cannot tell the type of.

        ``wanted`` are the api keys of types; None for all. Faults are as those of ``Columns.decode``.
        """
        cdef kr_pass_type types[KR_PASS_TYPES]
        cdef Columns columns
        cdef Programs programs
        cdef int64_t at = 0, n = values.count
        cdef int ok = 1
        cdef uint8_t api_key
        if values.values.validity != NULL:
            return None
        types[:] = self.types
        if wanted is not None:
            for number in self.programs:
                types[<int>number].is_skipped = number not in wanted
        opened = []
        try:
            while at < n:
                with nogil:
                    at = kr_pass_run(types, &values.values, at, n)
                if at < 0:
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                if at == n:
                    break
                if values.values.ends[at + 1] - values.values.ends[at] < 2:
                    return None
                api_key = values.values.data[values.values.ends[at] + 1]
                if api_key not in self.programs or types[api_key].values.decoder != NULL:
                    return None
                programs = self.programs[api_key]
                if not has_run(programs):
                    return None
                columns = opened_columns(programs, uuid_text)
                types[api_key].values.decoder = &columns.state
                opened.append((api_key, columns))
            found = []
            for key, columns in opened:
                if not kr_side_end(&types[<int>key].values):
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                rows = np.frombuffer(Grown.take(&types[<int>key].rows), np.int64)
                found.append((key, columns, rows, faults_of(&columns.state)))
            return found
        finally:
            for key, _ in opened:
                kr_side_leave(&self.types[<int>key].values, &types[<int>key].values)
                kr_growing_free(&types[<int>key].rows)


cdef class KeyedPass:
    """The types of a format with keys."""

    cdef kr_keyed_type each[KR_KEYED_TYPES]
    cdef int number_of[KR_KEYED_TYPES]  # by what a key begins with; -1 for none
    cdef list names, programs

    def __init__(self, dict types):
        """``types`` are the programs of keys and of values by name, and the numbers that their keys begin with."""
        self.names, self.programs = [], []
        memset(self.each, 0, sizeof(self.each))
        for number in range(KR_KEYED_TYPES):
            self.number_of[number] = -1
        for name, (api_keys, key, value) in types.items():
            if not api_keys or not 0 <= min(api_keys) <= max(api_keys) < KR_KEYED_TYPES:
                continue
            self.each[len(self.names)].key = side_of(key)
            self.each[len(self.names)].value = side_of(value)
            for number in api_keys:
                self.number_of[number] = len(self.names)
            self.names.append(name)
            self.programs.append((key, value))

    def __dealloc__(self):
        for number in range(KR_KEYED_TYPES):
            kr_side_close(&self.each[number].key)
            kr_side_close(&self.each[number].value)

    def decode(self, Values keys, Values values, bint uuid_text, wanted):
        """(name, columns of keys, columns of values, rows, which of them are tombstones) of each type, or of the one that
        is wanted; the fields of values are absent in tombstones. None when there is a record that is odd or has a fault."""
        cdef kr_keyed_type each[KR_KEYED_TYPES]
        cdef kr_keyed_type *types[KR_KEYED_TYPES]
        cdef Columns key, value
        cdef int64_t at = 0, n = values.count
        cdef int number, api_key
        if keys.count != n:
            raise ValueError(f"{keys.count} keys, but {n} values")
        each[:] = self.each
        for number in range(len(self.names)):
            each[number].key = kr_side_begin(&self.each[number].key)
            each[number].value = kr_side_begin(&self.each[number].value)
            each[number].is_skipped = wanted is not None and self.names[number] != wanted
        for number in range(KR_KEYED_TYPES):
            types[number] = &each[self.number_of[number]] if self.number_of[number] >= 0 else NULL
        opened = []
        try:
            while at < n:
                with nogil:
                    at = kr_keyed_run(types, &keys.values, &values.values, at, n)
                if at == KR_KEYED_NO_MEMORY:
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                if at == KR_KEYED_FAULT:
                    return None
                if at == n:
                    break
                number = self._number_at(keys, at)
                if number < 0 or each[number].key.decoder != NULL:
                    return None
                of_key, of_value = self.programs[number]
                if not has_run(of_key) or not has_run(of_value):
                    return None
                key, value = opened_columns(of_key, uuid_text), opened_columns(of_value, uuid_text)
                each[number].key.decoder, each[number].value.decoder = &key.state, &value.state
                opened.append((number, key, value))
            found = []
            for number, key, value in opened:
                if not kr_keyed_end(&each[number]):
                    raise MemoryError("no memory for messages, or a column of more than 2 GiB")
                rows = np.frombuffer(Grown.take(&each[number].rows), np.int64)
                is_tombstone = np.frombuffer(Grown.take(&each[number].tombstones), np.bool_)
                found.append((self.names[number], key, value, rows, is_tombstone))
            return found
        finally:
            for number in range(len(self.names)):
                kr_side_leave(&self.each[number].key, &each[number].key)
                kr_side_leave(&self.each[number].value, &each[number].value)
                kr_growing_free(&each[number].rows)
                kr_growing_free(&each[number].tombstones)

    cdef int _number_at(self, Values keys, int64_t row):
        """Which of the types a key that is long enough says."""
        cdef const uint8_t *p = keys.values.data + keys.values.ends[row]
        if keys.values.ends[row + 1] - keys.values.ends[row] < 2 or p[0] or p[1] >= KR_KEYED_TYPES:
            return -1
        return self.number_of[p[1]]
