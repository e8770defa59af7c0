"""The pass over headers that finds transactions, for the decoder that follows it."""

from libc.stdint cimport int8_t, int64_t

from kraftlog._native.c_decoder cimport kr_aborted, kr_decoder
from kraftlog._native.c_memory cimport kr_busy
from kraftlog._native.memory cimport Arena, Input, kr_input


cdef extern from "batch/lookahead.h" nogil:
    enum:
        KR_NO_PRODUCER

    ctypedef struct kr_open_transaction:
        int64_t producer_id, first_offset, first_position

    ctypedef struct kr_ended_transaction:
        int64_t producer_id, first_offset, first_position, marker_offset, marker_position, state

    ctypedef struct kr_open_table:
        kr_open_transaction *slots
        int64_t capacity, count

    ctypedef struct kr_lookahead:
        int64_t position
        int8_t check
        kr_open_table open
        kr_ended_transaction *ended
        int64_t ended_count, ended_capacity
        int64_t damaged_markers

    void kr_open_add(kr_open_table *t, kr_open_transaction added)
    int kr_lookahead_run(kr_lookahead *l, kr_input *input, int64_t stop)


cdef extern from "record/follow.h" nogil:
    ctypedef struct kr_follow:
        kr_lookahead *ahead
        kr_input *far
        kr_aborted *aborted
        int64_t aborted_capacity

    int kr_follow_run(kr_follow *f, kr_decoder *d)


cdef class Lookahead:
    cdef Input source
    cdef kr_busy busy
    cdef Arena slots, ended, hidden
    cdef kr_input input
    cdef kr_lookahead state
    cdef kr_follow follower

    cdef int _grow_table(self, int64_t capacity) except -1
    cdef int _grow_ended(self, int64_t capacity) except -1
    cdef int _make_room(self) except -1
    cdef int _run(self, int64_t stop) except -1
    cdef int follow(self, kr_decoder *d) except -1
