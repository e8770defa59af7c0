"""Transactions of a log file: owns the tables of native/c/batch/lookahead.h and releases the GIL around it."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport KR_CHECK_ALL, KR_CHECK_CONTROL, KR_END, KR_NEEDS_ROOM, KR_UNREADABLE
from kraftlog._native.c_memory cimport kr_busy_leave
from kraftlog._native.memory cimport Arena, Input, enter


kr_crc_init()

cdef enum:
    FIRST_SLOTS = 64
    FIRST_ENDED = 1024

_OPEN = ("producer_id", "first_offset", "first_position")
OPEN_DTYPE = np.dtype([(name, "i8") for name in _OPEN])
ENDED_DTYPE = np.dtype([(name, "i8") for name in (*_OPEN, "marker_offset", "marker_position", "state")])
if OPEN_DTYPE.itemsize != sizeof(kr_open_transaction) or ENDED_DTYPE.itemsize != sizeof(kr_ended_transaction):
    raise ImportError(f"OPEN_DTYPE has {OPEN_DTYPE.itemsize} bytes, ENDED_DTYPE {ENDED_DTYPE.itemsize}")


cdef class Lookahead:
    """Goes over the headers of a log file."""

    def __init__(self, buffer, bint check_all):
        """``check_all``: compare the crc of every batch."""
        self.source = Input(buffer, True)
        self.input = self.source.make(self.source.size)
        self.state.check = KR_CHECK_ALL if check_all else KR_CHECK_CONTROL
        self._grow_table(FIRST_SLOTS)

    cdef int _grow_table(self, int64_t capacity) except -1:
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
        return 0

    cdef int _grow_ended(self, int64_t capacity) except -1:
        cdef Arena fresh = Arena(capacity * sizeof(kr_ended_transaction))
        if self.state.ended_count:
            memcpy(fresh.data, self.state.ended, self.state.ended_count * sizeof(kr_ended_transaction))
        self.state.ended = <kr_ended_transaction *>fresh.data
        self.state.ended_capacity = capacity
        self.ended = fresh
        return 0

    def run(self, int64_t stop):
        """Goes on to the first batch at or behind byte ``stop``. Returns whether the file goes on behind it, and the
        transactions that ended, as ENDED_DTYPE. Raises OSError when the file cannot be read."""
        cdef int status
        enter(&self.busy, self)
        try:
            status = self._run(stop)
            if not self.state.ended_count:
                return status != KR_END, np.empty(0, ENDED_DTYPE)
            return status != KR_END, np.frombuffer(self.ended, ENDED_DTYPE, self.state.ended_count)
        finally:
            kr_busy_leave(&self.busy)

    cdef int _run(self, int64_t stop) except -1:
        cdef int status = KR_NEEDS_ROOM
        self.state.ended_count = 0
        self.state.ended_capacity = 0
        while status == KR_NEEDS_ROOM:
            with nogil:
                status = kr_lookahead_run(&self.state, &self.input, stop)
            if status == KR_NEEDS_ROOM:
                self._make_room()
        if status == KR_UNREADABLE:
            raise self.source.failure()
        return status

    cdef int _make_room(self) except -1:
        if self.state.ended_count == self.state.ended_capacity:
            self._grow_ended(max(FIRST_ENDED, 2 * self.state.ended_capacity))
        if 2 * (self.state.open.count + 1) > self.state.open.capacity:
            self._grow_table(2 * self.state.open.capacity)
        return 0

    cdef int follow(self, kr_decoder *d) except -1:
        """Finds out what a decoder of the same file must hide, from its position on: KR_OK, KR_UNREADABLE, or KR_END
        when a transaction that begins there does not end in the file."""
        cdef int status = KR_NEEDS_ROOM
        self.follower.ahead = &self.state
        self.follower.far = &self.input
        while status == KR_NEEDS_ROOM:
            with nogil:
                status = kr_follow_run(&self.follower, d)
            if status != KR_NEEDS_ROOM:
                break
            if self.state.ended_count > self.follower.aborted_capacity:
                self.hidden = Arena(2 * self.state.ended_count * sizeof(kr_aborted))
                self.follower.aborted = <kr_aborted *>self.hidden.data
                self.follower.aborted_capacity = 2 * self.state.ended_count
            self._make_room()
        return status

    @property
    def position(self):
        return self.state.position

    @property
    def damaged_markers(self):
        """Number of control batches up to here whose crc does not match."""
        return self.state.damaged_markers

    def open(self):
        """The transactions that have begun and not ended up to here, as OPEN_DTYPE."""
        rows = np.frombuffer(self.slots, OPEN_DTYPE, self.state.open.capacity)
        return rows[rows["producer_id"] != KR_NO_PRODUCER]
