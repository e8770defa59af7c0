"""Redaction of places in a column of JSON documents."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free

from kraftlog._native.c_json_redact cimport (
    KR_REDACT_EVERY,
    KR_REDACT_HASH_DIGITS,
    KR_REDACT_ITEM,
    KR_REDACT_MOST_RULES,
    KR_REDACT_NAME,
    KR_REDACT_PLACE_NUMBERS,
    KR_REDACT_TO_HASH,
    KR_REDACT_TO_MASK,
    KR_REDACT_TO_NULL,
    kr_redact_column,
    kr_redaction_place,
    kr_redaction_rule,
    kr_redaction_step,
    kr_redactor,
)
from kraftlog._native.hashes cimport Values

TO_NULL, TO_MASK, TO_HASH = KR_REDACT_TO_NULL, KR_REDACT_TO_MASK, KR_REDACT_TO_HASH
MOST_RULES, HASH_DIGITS = KR_REDACT_MOST_RULES, KR_REDACT_HASH_DIGITS

cdef enum:
    SPARE = 1 << 12  # bytes, so that few documents do not make it grow


cdef class JsonRedactor:
    """Rules, each the steps of a path and what becomes of what stands there; ``mask`` is JSON.

    A step is a name in UTF-8, the number of an item, or None for all.
    """

    cdef kr_redaction_rule *rules
    cdef kr_redaction_step *steps
    cdef int count
    cdef bytes mask
    cdef list names  # held

    def __cinit__(self, paths, mask):
        cdef int at = 0, i
        if not 1 <= len(paths) <= KR_REDACT_MOST_RULES or not all(steps for steps, _ in paths):
            raise ValueError(f"1 to {KR_REDACT_MOST_RULES} rules with steps expected, found {paths}")
        self.mask, self.names, self.count = mask, [], len(paths)
        self.rules = <kr_redaction_rule *>calloc(len(paths), sizeof(kr_redaction_rule))
        self.steps = <kr_redaction_step *>calloc(sum(len(steps) for steps, _ in paths), sizeof(kr_redaction_step))
        if self.rules == NULL or self.steps == NULL:
            raise MemoryError("no memory for rules of redaction")
        for i, (steps, how) in enumerate(paths):
            if how not in (KR_REDACT_TO_NULL, KR_REDACT_TO_MASK, KR_REDACT_TO_HASH):
                raise ValueError(f"{how} is nothing that a place can become")
            self.rules[i].steps = self.steps + at
            self.rules[i].count = len(steps)
            self.rules[i].how = how
            for step in steps:
                self.set_step(&self.steps[at], step)
                at += 1

    cdef int set_step(self, kr_redaction_step *made, step) except -1:
        if step is None:
            made.kind = KR_REDACT_EVERY
        elif isinstance(step, int):
            if step < 0:
                raise ValueError(f"item {step}: expected 0 or more")
            made.kind, made.number = KR_REDACT_ITEM, step
        else:
            self.names.append(bytes(step))
            made.kind, made.number = KR_REDACT_NAME, len(step)
            made.name = <const uint8_t *><const char *>(<bytes>self.names[-1])
        return 0

    def __dealloc__(self):
        free(self.rules)
        free(self.steps)

    def column(self, Values values not None):
        """Return ends and bytes of the documents, which of them are plain, and the places of hashes: where their digits
        go, and where what they are of starts in the data of the column, and its size."""
        cdef kr_redactor state
        cdef int64_t row = 0, rows = values.state.rows
        ends, is_plain = np.zeros(rows + 1, np.int64), np.zeros(max(rows, 1), np.uint8)
        cdef int64_t[::1] text_ends = ends
        cdef uint8_t[::1] plain = is_plain
        cdef uint8_t[::1] text
        cdef int64_t[:, ::1] spots
        cdef int64_t size = text_ends[0]
        if rows:
            size = values.state.ends[rows] - values.state.ends[0]
        out = np.empty(size + SPARE, np.uint8)
        places = np.empty((rows + SPARE if self.has_hash() else 1, KR_REDACT_PLACE_NUMBERS), np.int64)
        state.rules, state.rules_count = self.rules, self.count
        state.mask, state.mask_size = <const uint8_t *><const char *>self.mask, len(self.mask)
        state.written = state.places_count = 0
        while True:
            text, spots = out, places
            state.out, state.room = &text[0], len(out)
            state.places, state.places_room = <kr_redaction_place *>&spots[0, 0], len(places)
            with nogil:
                row = kr_redact_column(&state, &values.state, row, &text_ends[0], &plain[0])
            if row == rows:
                break
            out = np.concatenate([out[:state.written], np.empty(len(out) * 2 - state.written, np.uint8)])
            places = np.concatenate(
                [places[:state.places_count], np.empty((len(places) * 2 - state.places_count, KR_REDACT_PLACE_NUMBERS), np.int64)]
            )
        return ends, out[:state.written], is_plain[:rows].view(bool), places[:state.places_count]

    cdef bint has_hash(self):
        cdef int i
        for i in range(self.count):
            if self.rules[i].how == KR_REDACT_TO_HASH:
                return True
        return False
