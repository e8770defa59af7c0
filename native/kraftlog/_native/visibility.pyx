"""What transactions of the metadata log mean for the records around them, and the columns that they are found by."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kraftlog._native.c_chunk cimport kr_chunk_has
from kraftlog._native.c_decoder cimport KR_COLUMN_OFFSET, KR_COLUMN_VALUE, kr_batch_header, kr_columns
from kraftlog._native.chunk cimport Chunk


cdef extern from "metadata/visibility.h" nogil:
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


cdef extern from "metadata/stretch.h" nogil:
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

    ctypedef struct kr_stretch_sums:
        int64_t records, batches, bytes

    ctypedef struct kr_stretch_marker:
        int64_t offset

    ctypedef struct kr_marker_rows:
        int64_t n
        const int64_t *batches
        const int64_t *offsets
        const int64_t *api_keys

    ctypedef struct kr_stretch_outline:
        kr_stretch_sums sums
        int64_t last, last_data
        int is_whole, is_rising

    ctypedef struct kr_found_markers:
        int64_t *rows
        int64_t *batches
        kr_stretch_marker *markers

    ctypedef struct kr_marker_texts:
        int32_t *ends
        uint8_t *data
        uint8_t *has_text
        uint8_t *is_odd

    int64_t kr_marker_bytes(const kr_columns *c, const int64_t *rows, int64_t count)
    int64_t kr_marker_texts_put(const kr_columns *c, const int64_t *rows, int64_t count, const kr_marker_texts *to)
    void kr_stretch(const kr_batch_header *batches, int64_t n, int64_t place, const kr_stretch_columns *to)
    kr_stretch_outline kr_stretch_look(const kr_batch_header *batches, int64_t n, const kr_marker_rows *rows,
                                       kr_stretch_marker *markers)
    int64_t kr_marker_rows_find(const kr_columns *c, int64_t before, const kr_found_markers *to,
                                kr_stretch_outline *outline, int *is_rising)


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


cdef object outlined(object markers, const kr_stretch_outline *o):
    sums = o.sums.records, o.sums.batches, o.sums.bytes
    return markers, sums, o.last, o.last_data, bool(o.is_whole), bool(o.is_rising)


def marker_rows(Chunk chunk not None, int64_t before):
    """Return which rows of a chunk are markers or feature levels, and what there is of its batches.

    Parameters
    ----------
    chunk : Chunk
        With values, offsets and every batch.
    before : int
        The offset before the first row.

    Returns
    -------
    rows, batches : int64[markers]
        The batch of each row.
    outline : tuple
        As ``outline`` returns it; feature levels have rows there, and do not count as markers.
    is_rising : bool
        Whether each offset is larger than the one before.
    """
    cdef const kr_columns *columns = &chunk.state.columns
    if not kr_chunk_has(&chunk.state, KR_COLUMN_VALUE) or not kr_chunk_has(&chunk.state, KR_COLUMN_OFFSET):
        raise ValueError("a chunk without values or offsets")
    found = np.empty((2, columns.rows + 1), np.int64)
    markers = np.empty((columns.rows + 1, sizeof(kr_stretch_marker) // 8), np.int64)
    cdef int64_t[:, ::1] to = found, to_markers = markers
    cdef kr_found_markers places
    places.rows, places.batches, places.markers = &to[0, 0], &to[1, 0], <kr_stretch_marker *>&to_markers[0, 0]
    cdef kr_stretch_outline of_all
    cdef int is_rising
    cdef int64_t count
    with nogil:
        count = kr_marker_rows_find(columns, before, &places, &of_all, &is_rising)
    rows, batches = found[:, :count].copy()
    return rows, batches, outlined(markers[:count].copy(), &of_all), bool(is_rising)


def outline(const uint8_t[::1] headers not None, const int64_t[::1] batches not None,
            const int64_t[::1] offsets not None, const int64_t[::1] api_keys not None):
    """Return what there is of batches that lie one behind the other, and of the markers in them.

    Parameters
    ----------
    headers : uint8
        The bytes of the batches' headers.
    batches, offsets, api_keys : int64[markers]
        Of the markers; the first is the index of each one's batch.

    Returns
    -------
    markers : int64[markers, 9]
        As ``MARKER_DTYPE`` has them, counted from the first batch.
    sums : tuple of int
        Records, batches and bytes; control batches have none, and markers are no records.
    last : int
        The last offset.
    last_data : int
        The index of the last batch that is no control batch; -1 for none.
    is_whole, is_rising : bool
        Whether no offset is missing between them, and whether none comes again.
    """
    cdef int64_t n = headers.shape[0] // sizeof(kr_batch_header), i
    cdef kr_marker_rows rows
    rows.n = batches.shape[0]
    if not (offsets.shape[0] == api_keys.shape[0] == rows.n):
        raise ValueError("the columns of markers are not of one length")
    for i in range(rows.n):
        if not (batches[i - 1] if i else 0) <= batches[i] < n:
            raise ValueError(f"marker {i} in batch {batches[i]} of {n}")
    rows.batches, rows.offsets, rows.api_keys = numbers(batches), numbers(offsets), numbers(api_keys)
    markers = np.empty((rows.n + 1, sizeof(kr_stretch_marker) // 8), np.int64)
    cdef int64_t[:, ::1] to = markers
    cdef const kr_batch_header *lent = <const kr_batch_header *>&headers[0] if n else NULL
    cdef kr_stretch_outline found
    with nogil:
        found = kr_stretch_look(lent, n, &rows, <kr_stretch_marker *>&to[0, 0])
    return outlined(markers[: rows.n], &found)


def stretch(const uint8_t[::1] headers not None, int64_t place):
    """Return what is compared of batches that lie one behind the other.

    Parameters
    ----------
    headers : uint8
        The bytes of their headers.
    place : int
        Of byte 0 of their file.

    Returns
    -------
    tuple of numpy.ndarray
        int64 for each batch: base offset, last offset, leader epoch, place; records, batches and bytes up to it, control
        batches not counted; the last batch up to it that is no control batch, -1 for none. Then whether it is none.
    """
    cdef int64_t n = headers.shape[0] // sizeof(kr_batch_header)
    numbered, flags = np.empty((8, n + 1), np.int64), np.empty(n + 1, np.uint8)
    cdef int64_t[:, ::1] to = numbered
    cdef uint8_t[::1] to_flags = flags
    cdef kr_stretch_columns columns
    columns.base, columns.last, columns.epochs, columns.places = &to[0, 0], &to[1, 0], &to[2, 0], &to[3, 0]
    columns.records, columns.data_batches, columns.bytes = &to[4, 0], &to[5, 0], &to[6, 0]
    columns.last_data, columns.is_data = &to[7, 0], &to_flags[0]
    cdef const kr_batch_header *lent = <const kr_batch_header *>&headers[0] if n else NULL
    with nogil:
        kr_stretch(lent, n, place, &columns)
    return (*numbered[:, :n], flags[:n].view(np.bool_))


def marker_texts(Chunk chunk not None, const int64_t[::1] rows not None):
    """Return the names and reasons of markers.

    Parameters
    ----------
    chunk : Chunk
        With values.
    rows : int64[markers]
        Rows of the chunk.

    Returns
    -------
    ends : int32[markers + 1]
    data : uint8
        The texts one behind the other, as UTF-8.
    has_text, is_odd : bool[markers]
        Odd markers are in a form that no writer uses; their texts are empty.
    """
    cdef const kr_columns *columns = &chunk.state.columns
    if not kr_chunk_has(&chunk.state, KR_COLUMN_VALUE):
        raise ValueError("a chunk without values")
    cdef int64_t count = rows.shape[0]
    cdef const int64_t *lent = numbers(rows)
    cdef int64_t size = kr_marker_bytes(columns, lent, count)
    if size < 0:
        raise ValueError(f"rows {rows[0]} to {rows[count - 1]} are not all of a chunk of {columns.rows}")
    ends, data = np.empty(count + 1, np.int32), np.empty(size + 1, np.uint8)
    has_text, is_odd = np.empty(count + 1, np.uint8), np.empty(count + 1, np.uint8)
    cdef int32_t[::1] to_ends = ends
    cdef uint8_t[::1] to_data = data, to_has_text = has_text, to_odd = is_odd
    cdef kr_marker_texts to
    to.ends, to.data, to.has_text, to.is_odd = &to_ends[0], &to_data[0], &to_has_text[0], &to_odd[0]
    with nogil:
        size = kr_marker_texts_put(columns, lent, count, &to)
    return ends, data[:size], has_text[:count].view(np.bool_), is_odd[:count].view(np.bool_)
