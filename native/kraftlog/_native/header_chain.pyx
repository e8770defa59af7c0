"""Batches of a file, found by small reads: the walk of native/c/header_chain.h."""

from libc.stdint cimport int64_t


cdef extern from "header_chain.h" nogil:
    ctypedef struct kr_header_chain:
        pass

    void kr_header_chain_begin(kr_header_chain *c, int file, int64_t size, int64_t start, int64_t end)
    int64_t kr_header_chain_next(kr_header_chain *c, int64_t least)


cdef class HeaderChain:
    """The chain of headers in [start, end) of an open file, which the caller keeps open."""

    cdef kr_header_chain state

    def __init__(self, int file, int64_t size, int64_t start, int64_t end):
        kr_header_chain_begin(&self.state, file, size, start, end)

    def next_batch(self, int64_t least):
        """The position of the next batch that starts at or behind ``least``; None when no chain leads there."""
        cdef int64_t position
        with nogil:
            position = kr_header_chain_next(&self.state, least)
        return None if position < 0 else position
