/* The Arrow buffers that a decoder fills. All of them are allocated by the caller, with room for `max_rows` records and
 * `max_bytes` bytes of batches; data buffers have KR_PADDING bytes more, since short copies move whole words. */
#ifndef KRAFTLOG_COLUMNS_H
#define KRAFTLOG_COLUMNS_H

#include "batch.h"
#include "copy.h"
#include "utf8.h"

enum kr_want {
    KR_WANT_KEY = 1,
    KR_WANT_VALUE = 2,
    KR_WANT_OFFSET = 4,
    KR_WANT_TIMESTAMP = 8,
    KR_WANT_TIMESTAMP_MS = 16,
    KR_WANT_HEADERS = 32,
    KR_WANT_CONTROL_TYPE = 64,
    KR_ONLY_MARKERS = 128 /* no column: rows are only markers and feature levels of a metadata log, batches all */
};

/* Arrow's binary layout. `validity` starts as all ones and loses a bit for each null. */
typedef struct {
    int32_t *ends; /* ends[0] = 0; ends[i + 1] is where value i ends */
    uint8_t *data;
    uint8_t *validity;
    int64_t nulls;
    int64_t end; /* of the last value: ends[rows] */
} kr_binary_column;

typedef struct {
    int64_t rows, max_rows;
    int64_t bytes, max_bytes; /* of batches taken in, not of what was put out */
    int64_t headers, max_headers;
    int64_t batches, max_batches;
    kr_binary_column key, value;
    int64_t *offset;
    int64_t *timestamp; /* microseconds; null for -1 and where they overflow */
    uint8_t *timestamp_validity;
    int64_t timestamp_nulls;
    int64_t *timestamp_ms;
    int16_t *control_type;
    int32_t *header_ends; /* per record, into the header columns */
    kr_binary_column header_key, header_value;
    kr_batch_header *batch; /* one for each batch with rows; with KR_ONLY_MARKERS for every one */
} kr_columns;

static inline void kr_clear_bit(uint8_t *bits, int64_t i) { bits[i >> 3] &= (uint8_t)~(1u << (i & 7)); }

/* Sets the bits [from, to) again: rows that are taken back may have cleared some. */
static inline void kr_set_bits(uint8_t *bits, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) bits[i >> 3] |= (uint8_t)(1u << (i & 7));
}

/* Appends n bytes, or null for n < 0. `padded` says that KR_PADDING bytes behind the source can be read. */
KR_ALWAYS_INLINE void kr_put_binary(kr_binary_column *c, int64_t row, const uint8_t *from, int64_t n,
                                    const int padded) {
    if (n >= 0) {
        if (padded)
            kr_copy_padded(c->data + c->end, from, n);
        else
            memcpy(c->data + c->end, from, (size_t)n);
        c->end += n;
    } else {
        kr_clear_bit(c->validity, row);
        c->nulls++;
    }
    c->ends[row + 1] = (int32_t)c->end;
}

KR_ALWAYS_INLINE void kr_put_timestamp(kr_columns *c, int64_t row, int64_t ms) {
    int64_t us;
    if (!KR_LIKELY(ms != -1 && !__builtin_mul_overflow(ms, 1000, &us))) {
        us = 0;
        kr_clear_bit(c->timestamp_validity, row);
        c->timestamp_nulls++;
    }
    c->timestamp[row] = us;
}

/* Counts to return to when a batch turns out to be bad. */
typedef struct {
    int64_t rows, headers, key_nulls, value_nulls, timestamp_nulls, header_value_nulls;
} kr_mark;

static inline kr_mark kr_columns_mark(const kr_columns *c) {
    kr_mark m = {c->rows, c->headers, c->key.nulls, c->value.nulls, c->timestamp_nulls, c->header_value.nulls};
    return m;
}

static inline void kr_columns_return_to(kr_columns *c, kr_mark m, uint32_t want) {
    /* one row more: the record that was being written when the fault was found */
    if (want & KR_WANT_KEY) kr_set_bits(c->key.validity, m.rows, c->rows + 1);
    if (want & KR_WANT_VALUE) kr_set_bits(c->value.validity, m.rows, c->rows + 1);
    if (want & KR_WANT_TIMESTAMP) kr_set_bits(c->timestamp_validity, m.rows, c->rows + 1);
    if (want & KR_WANT_HEADERS) kr_set_bits(c->header_value.validity, m.headers, c->headers + 1);
    c->rows = m.rows;
    c->headers = m.headers;
    if (want & KR_WANT_KEY) c->key.end = c->key.ends[m.rows];
    if (want & KR_WANT_VALUE) c->value.end = c->value.ends[m.rows];
    if (want & KR_WANT_HEADERS) {
        c->header_key.end = c->header_key.ends[m.headers];
        c->header_value.end = c->header_value.ends[m.headers];
    }
    c->key.nulls = m.key_nulls;
    c->value.nulls = m.value_nulls;
    c->timestamp_nulls = m.timestamp_nulls;
    c->header_value.nulls = m.header_value_nulls;
}

#endif
