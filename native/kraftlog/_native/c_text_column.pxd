from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "arrow/text_column.h" nogil:
    ctypedef struct kr_lent_buffer:
        const uint8_t *start
        int64_t size

    enum:
        KR_NOT_LOOKED_AT

    enum kr_text_layout:
        KR_TEXT_NULLS
        KR_TEXT_ENDS32
        KR_TEXT_ENDS64
        KR_TEXT_VIEWS
        KR_TEXT_FIXED

    ctypedef struct kr_text_values:
        kr_text_layout layout
        int64_t rows, offset, width
        kr_lent_buffer validity, places
        const kr_lent_buffer *data
        int64_t data_count
        int (*look)(void *owner, int64_t buffer)
        void *owner

    ctypedef struct kr_text_column:
        kr_text_values values
        int index_width, index_is_signed
        int64_t rows, offset
        kr_lent_buffer indexes, index_validity

    enum kr_text_fault:
        KR_TEXT_OK
        KR_TEXT_BUFFER_SHORT
        KR_TEXT_ENDS_FALL
        KR_TEXT_OUTSIDE
        KR_TEXT_NEGATIVE
        KR_TEXT_NO_BUFFER
        KR_TEXT_NO_INDEX

    ctypedef struct kr_text_error:
        kr_text_fault fault
        int64_t row, found, limit

    ctypedef struct kr_lent_list:
        int64_t rows, offset
        int width
        kr_lent_buffer ends, validity
        int64_t items

    bint kr_text_has_room(const kr_text_column *c, kr_text_error *e)
    int64_t kr_text_measure(const kr_text_column *c, int64_t first, int64_t count, int64_t most, int64_t most_of_one, int64_t *bytes, kr_text_error *e)
    int64_t kr_text_gather(const kr_text_column *c, int64_t first, int64_t count, int32_t *ends, uint8_t *validity, uint8_t *data)
    int64_t kr_text_at(const kr_text_column *c, int64_t i, const uint8_t **p, kr_text_error *e)
    bint kr_lent_list_has_room(const kr_lent_list *c, kr_text_error *e)
    int64_t kr_lent_list_measure(const kr_lent_list *c, int64_t first, int64_t count, int64_t most, int64_t most_of_one, int64_t *items, kr_text_error *e)
    int64_t kr_lent_list_end(const kr_lent_list *c, int64_t i)
    bint kr_lent_list_is_null(const kr_lent_list *c, int64_t i)
