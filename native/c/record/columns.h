/* The Arrow buffers that a decoder fills. All of them are allocated by the caller, with room for `max_rows` records and
 * `max_bytes` bytes of batches; data buffers have KR_PADDING bytes more, since short copies move whole words.
 *
 * One list names the columns and their kinds. Bits of kr_want, fields, memory, the taking back of rows and Arrow arrays
 * are all made from it; kr_record_put alone says which value goes where. */
#ifndef KRAFTLOG_RECORD_COLUMNS_H
#define KRAFTLOG_RECORD_COLUMNS_H

#include "arrow/column_kinds.h"
#include "batch/batch.h"

/* clang-format off */
#define KR_COLUMN_LIST(X) \
    X(KEY, key, binary) \
    X(VALUE, value, binary) \
    X(OFFSET, offset, int64) \
    X(TIMESTAMP, timestamp, nullable) /* microseconds; null for -1 and where they overflow */ \
    X(TIMESTAMP_MS, timestamp_ms, int64) \
    X(HEADERS, headers, headers) \
    X(CONTROL_TYPE, control_type, int16)

enum kr_column {
#define X(NAME, name, kind) KR_COLUMN_##NAME,
    KR_COLUMN_LIST(X)
#undef X
    KR_COLUMN_COUNT
};

enum kr_want {
#define X(NAME, name, kind) KR_WANT_##NAME = 1 << KR_COLUMN_##NAME,
    KR_COLUMN_LIST(X)
#undef X
    KR_WANT_ALL = (1 << KR_COLUMN_COUNT) - 1,
    /* no columns: */
    KR_ONLY_MARKERS = 1 << 16, /* rows are only markers and feature levels of a metadata log */
    KR_VIEWS = 1 << 17,        /* keys and values are views */
    KR_EVERY_BATCH = 1 << 18,  /* batches are all, those of no rows among them */
    KR_FROM_HEADERS = 1 << 19, /* rows that a header tells are not decompressed */
    /* columns that a header may tell: */
    KR_HEADER_COLUMNS = KR_WANT_OFFSET | KR_WANT_TIMESTAMP | KR_WANT_TIMESTAMP_MS | KR_WANT_CONTROL_TYPE
};
/* clang-format on */

static const char *const kr_column_names[KR_COLUMN_COUNT] = {
#define X(NAME, name, kind) #name,
    KR_COLUMN_LIST(X)
#undef X
};

typedef struct {
    int64_t rows, max_rows;
    int64_t bytes, max_bytes; /* of batches taken in, not of what was put out */
    int64_t batches, max_batches;
    int64_t max_headers;
#define X(NAME, name, kind) kr_##kind##_column name;
    KR_COLUMN_LIST(X)
#undef X
    int64_t max_copied;       /* bytes that views can have in `data`: 0 or max_bytes */
    int64_t view_origin;      /* byte of the input that offsets of views count from */
    const uint8_t *view_from; /* where that is in memory; NULL while what is decoded does not stay there */
    kr_batch_header *batch;   /* one for each batch with rows; with KR_EVERY_BATCH for every one */
} kr_columns;

/* Makes the columns what they were `before`, which is a copy of them from then; inlined, so that no more of it is
 * copied than is used. */
KR_ALWAYS_INLINE void kr_columns_return_to(kr_columns *c, const kr_columns *before, uint32_t want) {
    int64_t from = before->rows, to = c->rows + 1; /* with the record that was being written when the fault was found */
#define X(NAME, name, kind)                                                                                            \
    if (want & KR_WANT_##NAME) kr_take_back_##kind(&c->name, &before->name, from, to);
    KR_COLUMN_LIST(X)
#undef X
    c->rows = from;
}

#endif
