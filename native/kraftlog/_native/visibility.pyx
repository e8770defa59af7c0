"""What transactions of the metadata log mean for the records around them, and the columns that they are found by."""

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


cdef extern from "metadata_stretch.h" nogil:
    ctypedef struct kr_stretch_columns:
        int64_t *base
        int64_t *last
        int64_t *epochs
        int64_t *places
        int64_t *records
        int64_t *data_batches
        int64_t *bytes
        int64_t *last_data
        uint8_t *is_data

    int64_t kr_stretch(const kr_batch_header *batches, int64_t n, int64_t place, const kr_stretch_columns *to,
                       int64_t *batch_of, int64_t rows)


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


def stretch(const uint8_t[::1] headers not None, int64_t place, int64_t rows):
    """Return what is compared of batches that lie one behind the other.

    Parameters
    ----------
    headers : uint8
        The bytes of their headers.
    place : int
        Of byte 0 of their file.
    rows : int
        How many rows they have.

    Returns
    -------
    tuple of numpy.ndarray
        int64 for each batch: base offset, last offset, leader epoch, place; records, batches and bytes up to it, control
        batches not counted; the last batch up to it that is no control batch, -1 for none. Then whether it is none, and
        int64 for each row: its batch.
    """
    cdef int64_t n = headers.shape[0] // sizeof(kr_batch_header), found
    numbered, flags, of_rows = np.empty((8, n + 1), np.int64), np.empty(n + 1, np.uint8), np.empty(rows + 1, np.int64)
    cdef int64_t[:, ::1] to = numbered
    cdef uint8_t[::1] to_flags = flags
    cdef int64_t[::1] to_rows = of_rows
    cdef kr_stretch_columns columns
    columns.base, columns.last, columns.epochs, columns.places = &to[0, 0], &to[1, 0], &to[2, 0], &to[3, 0]
    columns.records, columns.data_batches, columns.bytes = &to[4, 0], &to[5, 0], &to[6, 0]
    columns.last_data, columns.is_data = &to[7, 0], &to_flags[0]
    cdef const kr_batch_header *lent = <const kr_batch_header *>&headers[0] if n else NULL
    with nogil:
        found = kr_stretch(lent, n, place, &columns, &to_rows[0], rows)
    if found != rows:
        raise ValueError(f"the batches have {found} rows, not {rows}")
    return (*numbered[:, :n], flags[:n].view(np.bool_), of_rows[:rows])
