"""Text of the cells of a column: ends and bytes of Arrow's large_string."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_cell_text cimport (
    KR_CELL_BASE64,
    KR_CELL_CSV,
    KR_CELL_HEX,
    KR_CELL_JSON,
    KR_MOST_TIMESTAMP,
    kr_cell_form,
    kr_cells_measure,
    kr_cells_write,
    kr_timestamps_write,
)
from kraftlog._native.hashes cimport Values

BASE64, HEX, JSON, CSV = KR_CELL_BASE64, KR_CELL_HEX, KR_CELL_JSON, KR_CELL_CSV


def cell_texts(int form, Values values not None):
    if not KR_CELL_BASE64 <= form <= KR_CELL_CSV:
        raise ValueError(f"form is {form}, expected {KR_CELL_BASE64} to {KR_CELL_CSV}")
    ends = np.empty(values.state.rows + 1, np.int64)
    cdef int64_t[::1] text_ends = ends
    cdef int64_t size
    with nogil:
        size = kr_cells_measure(<kr_cell_form>form, &values.state, &text_ends[0])
    texts = np.empty(max(size, 1), np.uint8)
    cdef uint8_t[::1] text = texts
    with nogil:
        kr_cells_write(<kr_cell_form>form, &values.state, &text[0])
    return ends, texts


def timestamp_texts(const int64_t[::1] microseconds not None):
    cdef int64_t cells = microseconds.shape[0]
    ends, texts = np.empty(cells + 1, np.int64), np.empty(max(cells, 1) * KR_MOST_TIMESTAMP, np.uint8)
    cdef int64_t[::1] text_ends = ends
    cdef uint8_t[::1] text = texts
    cdef const int64_t *first = &microseconds[0] if cells else NULL
    with nogil:
        kr_timestamps_write(first, cells, &text_ends[0], &text[0])
    return ends, texts
