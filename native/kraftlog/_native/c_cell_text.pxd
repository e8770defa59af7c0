from libc.stdint cimport int64_t, uint8_t

from kraftlog._native.c_lent cimport kr_lent_large


cdef extern from "arrow/cell_text.h" nogil:
    enum kr_cell_form:
        KR_CELL_BASE64
        KR_CELL_HEX
        KR_CELL_JSON
        KR_CELL_CSV
    enum:
        KR_MOST_TIMESTAMP
    int64_t kr_cells_measure(kr_cell_form form, const kr_lent_large *v, int64_t *text_ends)
    void kr_cells_write(kr_cell_form form, const kr_lent_large *v, uint8_t *text)
    int64_t kr_timestamps_write(const int64_t *us, int64_t cells, int64_t *text_ends, uint8_t *text)
