"""Transactions that end ahead of a reader: owns the tables of native/c/lookahead.h and releases the GIL around it."""

import numpy as np

from libc.stdint cimport int8_t, int64_t
from libc.string cimport memcpy

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport KR_END, KR_NEEDS_ROOM, kr_input, kr_input_make
from kraftlog._native.memory cimport Arena, Input


cdef extern from "lookahead.h" nogil:
    enum:
        KR_NO_PRODUCER
        KR_PLACE_BITS

    ctypedef struct kr_open_transaction:
        int64_t producer_id, first_offset, first_place

    ctypedef struct kr_ended_transaction:
        int64_t producer_id, first_place, marker_place, marker_offset, state

    ctypedef struct kr_open_table:
        kr_open_transaction *slots
        int64_t capacity, count

    ctypedef struct kr_lookahead:
        kr_input input
        int64_t position, file, base_offset
        int8_t is_chain, every, check_all
        kr_open_table open
        kr_ended_transaction *ended
        int64_t ended_count, ended_capacity

    void kr_open_add(kr_open_table *t, kr_open_transaction added)
    int kr_lookahead_run(kr_lookahead *l, int64_t stop)

kr_crc_init()

cdef enum:
    FIRST_SLOTS = 64
    FIRST_ENDED = 1024

PLACE_BITS = KR_PLACE_BITS
ENDED_DTYPE = np.dtype(
    [(name, "i8") for name in ("producer_id", "first_place", "marker_place", "marker_offset", "state")]
)
if ENDED_DTYPE.itemsize != sizeof(kr_ended_transaction):
    raise ImportError(f"ENDED_DTYPE has {ENDED_DTYPE.itemsize} bytes")


cdef class Lookahead:
    """Goes over the headers of a partition's files, one after the other."""

    cdef Input source
    cdef Arena slots, ended
    cdef kr_lookahead state

    def __init__(self, opened, bint every, bint check_all):
        """``opened``: producer id and first offset of transactions that are open at the start."""
        cdef kr_open_transaction added
        self.state.every = every
        self.state.check_all = check_all
        self.state.file = -1
        self._grow_table(FIRST_SLOTS)
        for producer_id, first_offset in opened:
            if 2 * (self.state.open.count + 1) > self.state.open.capacity:
                self._grow_table(2 * self.state.open.capacity)
            added.producer_id, added.first_offset, added.first_place = producer_id, first_offset, -1
            kr_open_add(&self.state.open, added)

    cdef void _grow_table(self, int64_t capacity):
        cdef Arena fresh = Arena(capacity * sizeof(kr_open_transaction))
        cdef kr_open_table table
        cdef int64_t i
        table.slots = <kr_open_transaction *>fresh.data
        table.capacity = capacity
        table.count = 0
        for i in range(capacity):
            table.slots[i].producer_id = KR_NO_PRODUCER
        for i in range(self.state.open.capacity):
            if self.state.open.slots[i].producer_id != KR_NO_PRODUCER:
                kr_open_add(&table, self.state.open.slots[i])
        self.state.open = table
        self.slots = fresh

    cdef void _grow_ended(self, int64_t capacity):
        cdef Arena fresh = Arena(capacity * sizeof(kr_ended_transaction))
        if self.state.ended_count:
            memcpy(fresh.data, self.state.ended, self.state.ended_count * sizeof(kr_ended_transaction))
        self.state.ended = <kr_ended_transaction *>fresh.data
        self.state.ended_capacity = capacity
        self.ended = fresh

    def begin(self, buffer):
        """Goes on with the next file."""
        self.source = Input(buffer)
        self.state.input = kr_input_make(self.source.data, self.source.size)
        self.state.position = 0
        self.state.file += 1
        self.state.base_offset = -1
        self.state.is_chain = True

    def run(self, int64_t stop):
        """Goes on to the first batch at or behind byte ``stop``. Returns whether the file goes on behind it, and the
        transactions that ended, as ENDED_DTYPE."""
        cdef int status = KR_NEEDS_ROOM
        self.state.ended_count = 0
        self.state.ended_capacity = 0
        while status == KR_NEEDS_ROOM:
            with nogil:
                status = kr_lookahead_run(&self.state, stop)
            if status == KR_NEEDS_ROOM:
                if self.state.ended_count == self.state.ended_capacity:
                    self._grow_ended(max(FIRST_ENDED, 2 * self.state.ended_capacity))
                if 2 * (self.state.open.count + 1) > self.state.open.capacity:
                    self._grow_table(2 * self.state.open.capacity)
        if not self.state.ended_count:
            return status != KR_END, np.empty(0, ENDED_DTYPE)
        return status != KR_END, np.frombuffer(self.ended, ENDED_DTYPE, self.state.ended_count)

    @property
    def position(self):
        return self.state.position

    @property
    def is_chain(self):
        """Whether every header of this file follows plausibly from the one before."""
        return bool(self.state.is_chain)

    def open(self):
        """Producer id, first offset and first place (-1: before the first file) of the open transactions."""
        table = self.state.open
        return [
            (table.slots[i].producer_id, table.slots[i].first_offset, table.slots[i].first_place)
            for i in range(table.capacity) if table.slots[i].producer_id != KR_NO_PRODUCER
        ]

    @property
    def first_unstable_place(self):
        """Where the earliest open transaction begins; None when none is open."""
        cdef int64_t i, least = 0
        cdef bint found = False
        for i in range(self.state.open.capacity):
            if self.state.open.slots[i].producer_id != KR_NO_PRODUCER:
                if not found or self.state.open.slots[i].first_place < least:
                    least = self.state.open.slots[i].first_place
                found = True
        return least if found else None
