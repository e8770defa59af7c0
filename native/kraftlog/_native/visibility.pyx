"""What transactions of the metadata log mean for the records around them."""

import numpy as np

from libc.stdint cimport int8_t, int64_t, uint8_t

from kraftlog._native.c_decoder cimport kr_batch_header


cdef extern from "metadata_visibility.h" nogil:
    ctypedef struct kr_metadata_transactions:
        int64_t n, markers_n
        const int64_t *first
        const int64_t *last
        const int64_t *end
        const int8_t *state
        const int64_t *markers

    int64_t kr_metadata_visible(const kr_metadata_transactions *t, const kr_batch_header *batches, int64_t n,
                                const int64_t *offsets, int64_t rows, int8_t *states, uint8_t *shown,
                                int64_t *visible_at)


cdef const int64_t *numbers(const int64_t[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


def visibility(const int64_t[::1] first not None, const int64_t[::1] last not None, const int64_t[::1] end not None,
               const int8_t[::1] state not None, const int64_t[::1] markers not None,
               const uint8_t[::1] headers not None, const int64_t[::1] offsets not None):
    """Return the state of each record's transaction, whether it is shown, and when it became visible.

    Parameters
    ----------
    first, last, end : int64[transactions]
        Offsets, by ``first``.
    state : int8[transactions]
    markers : int64[markers]
        Offsets of markers, which rise.
    headers : uint8
        The bytes of the headers of the records' batches.
    offsets : int64[records]
    """
    cdef kr_metadata_transactions t
    t.n, t.markers_n = first.shape[0], markers.shape[0]
    if not (last.shape[0] == end.shape[0] == state.shape[0] == t.n):
        raise ValueError("the columns of transactions are not of one length")
    t.first, t.last, t.end, t.markers = numbers(first), numbers(last), numbers(end), numbers(markers)
    t.state = &state[0] if t.n else NULL
    cdef int64_t rows = offsets.shape[0], batches = headers.shape[0] // sizeof(kr_batch_header)
    states, shown, visible_at = np.empty(rows + 1, np.int8), np.empty(rows + 1, np.uint8), np.empty(rows + 1, np.int64)
    cdef int8_t[::1] to_states = states
    cdef uint8_t[::1] to_shown = shown
    cdef int64_t[::1] to_visible = visible_at
    cdef const kr_batch_header *lent = <const kr_batch_header *>&headers[0] if batches else NULL
    cdef const int64_t *at = numbers(offsets)
    cdef int64_t found
    with nogil:
        found = kr_metadata_visible(&t, lent, batches, at, rows, &to_states[0], &to_shown[0], &to_visible[0])
    if found != rows:
        raise ValueError(f"the batches have {found} records, and there are {rows} offsets")
    return states[:rows], shown[:rows].view(np.bool_), visible_at[:rows]
