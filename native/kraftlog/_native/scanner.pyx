"""Batch headers of a buffer as a NumPy structured array."""

import numpy as np

from libc.stdint cimport int64_t

from kraftlog._native.c_crc cimport kr_crc_init
from kraftlog._native.c_decoder cimport (
    KR_CHECK_ALL,
    KR_CHECK_CONTROL,
    KR_CHECK_LENGTH,
    KR_CHUNK_FULL,
    KR_COMPRESSION_MASK,
    KR_CONTROL_BIT,
    KR_DELETE_HORIZON_BIT,
    KR_END,
    KR_LAST_COMPRESSION,
    KR_LEGACY_MIN_LENGTH_V0,
    KR_LOG_OVERHEAD,
    KR_RECORD_BATCH_OVERHEAD,
    KR_OK,
    KR_REST,
    KR_TIMESTAMP_TYPE_BIT,
    KR_TRANSACTIONAL_BIT,
    KR_UNREADABLE,
    kr_batch_header,
    kr_error,
    kr_header_read,
    kr_scanner,
    kr_scanner_run,
    kr_scanner_skip,
)
from kraftlog._native.c_memory cimport kr_busy, kr_busy_leave
from kraftlog._native.memory cimport Arena, Input, enter, kr_input

kr_crc_init()

LOG_OVERHEAD = KR_LOG_OVERHEAD
RECORD_BATCH_OVERHEAD = KR_RECORD_BATCH_OVERHEAD
COMPRESSION_MASK = KR_COMPRESSION_MASK
TIMESTAMP_TYPE_BIT = KR_TIMESTAMP_TYPE_BIT
TRANSACTIONAL_BIT = KR_TRANSACTIONAL_BIT
CONTROL_BIT = KR_CONTROL_BIT
DELETE_HORIZON_BIT = KR_DELETE_HORIZON_BIT
LAST_COMPRESSION = KR_LAST_COMPRESSION
CHECK_LENGTH = KR_CHECK_LENGTH
CHECK_ALL = KR_CHECK_ALL
CHECK_CONTROL = KR_CHECK_CONTROL

# The fields of kr_batch_header in native/c/batch/batch.h, in their order; tests compare the size.
HEADER_DTYPE = np.dtype(
    [
        ("position", "i8"),
        ("base_offset", "i8"),
        ("base_timestamp", "i8"),
        ("max_timestamp", "i8"),
        ("producer_id", "i8"),
        ("crc", "u4"),
        ("batch_length", "i4"),
        ("partition_leader_epoch", "i4"),
        ("last_offset_delta", "i4"),
        ("base_sequence", "i4"),
        ("records_count", "i4"),
        ("rows", "i4"),
        ("coordinator_epoch", "i4"),
        ("attributes", "i2"),
        ("producer_epoch", "i2"),
        ("control_type", "i2"),
        ("magic", "i1"),
        ("crc_ok", "i1"),
    ]
)
if HEADER_DTYPE.itemsize != sizeof(kr_batch_header):
    raise ImportError(f"HEADER_DTYPE has {HEADER_DTYPE.itemsize} bytes, kr_batch_header {sizeof(kr_batch_header)}")


def header_at(buffer, int64_t position):
    """The header at a position of a buffer or file, as an array of one; of none where no header stands there."""
    cdef Input source = Input(buffer, True)
    cdef Arena arena = Arena(sizeof(kr_batch_header))
    cdef kr_error error
    cdef kr_input input
    cdef int status = KR_END
    if 0 <= position < source.size:
        input = source.make(position)
        with nogil:
            status = kr_header_read(&input, position, <kr_batch_header *>arena.data, &error)
        if status == KR_UNREADABLE:
            raise source.failure()
    return np.frombuffer(arena, HEADER_DTYPE, status == KR_OK)


cdef enum:
    SMALLEST_BATCH = KR_LOG_OVERHEAD + KR_LEGACY_MIN_LENGTH_V0  # bytes


cdef class Scanner:
    """Walks over the headers in [start, end) of a buffer."""

    cdef Input source
    cdef kr_busy busy
    cdef kr_scanner state

    def __init__(self, buffer, int64_t start, int64_t end, int check, bint salvage=False):
        self.source = Input(buffer, True)
        self.state.input = self.source.make(end, salvage)
        self.state.position = start
        self.state.end = min(end, self.source.size)
        self.state.check = check
        self.state.torn_at = -1

    @property
    def size(self):
        return self.source.size

    @property
    def torn_at(self):
        return self.state.torn_at

    @property
    def salvaged_at(self):
        return self.source.salvage.salvaged_at

    @property
    def position(self):
        return self.state.position

    def skip(self, int64_t least):
        """Goes on to the first batch at or behind byte ``least``. Returns its position; None when the walk ends before,
        or comes to a fault behind which nothing is read."""
        cdef int64_t position
        enter(&self.busy, self)
        try:
            with nogil:
                position = kr_scanner_skip(&self.state, least)
            if self.state.input.failed:
                raise self.source.failure()
        finally:
            kr_busy_leave(&self.busy)
        return None if position < 0 else position

    def run(self, int64_t max_batches):
        """Up to ``max_batches`` headers; whether there is more; and what ended the run, if anything did: a fault, or
        the exception of an input that cannot be read."""
        enter(&self.busy, self)
        try:
            return self._run(max_batches)
        finally:
            kr_busy_leave(&self.busy)

    cdef tuple _run(self, int64_t max_batches):
        cdef int64_t possible = max(self.source.size - self.state.position, 0) // SMALLEST_BATCH + 1
        cdef Arena arena = Arena(min(max_batches, possible) * sizeof(kr_batch_header))
        cdef kr_batch_header *target = <kr_batch_header *>arena.data
        cdef int64_t count
        cdef int status
        with nogil:
            status = kr_scanner_run(&self.state, target, min(max_batches, possible), &count)
        fault = None
        if status == KR_UNREADABLE:
            return np.frombuffer(arena, HEADER_DTYPE, count), False, self.source.failure()
        if status != KR_END and status != KR_CHUNK_FULL:
            fault = (
                status, -1, self.state.error.position, self.state.error.expected, self.state.error.actual,
                self.state.fault_at, -1, self.state.position - self.state.fault_at, self.state.error.lost == KR_REST,
            )
        return np.frombuffer(arena, HEADER_DTYPE, count), status != KR_END, fault
