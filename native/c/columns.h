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
    KR_ONLY_MARKERS = 128, /* no column: rows are only markers and feature levels of a metadata log, batches all */
    KR_VIEWS = 256         /* no column: keys and values are views */
};

/* A value of Arrow's binary view layout: up to KR_VIEW_INLINE bytes are in it; of more, their first four, and where
 * they are in which buffer. */
typedef struct {
    int32_t length;
    uint8_t prefix[4];
    int32_t buffer, offset;
} kr_view;

enum { KR_VIEW_INLINE = 12, KR_VIEW_OF_INPUT = 0, KR_VIEW_OF_DATA = 1 };

/* Arrow's binary layout, or with `views` its binary view layout, of which `data` holds what is not in the input.
 * `validity` starts as all ones and loses a bit for each null. */
typedef struct {
    int32_t *ends; /* ends[0] = 0; ends[i + 1] is where value i ends */
    kr_view *views;
    uint8_t *data;
    uint8_t *validity;
    int64_t nulls;
    int64_t end; /* of the last value: ends[rows], or of what views have in `data` */
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
    int64_t max_copied;       /* bytes that views can have in `data`: 0 or max_bytes */
    int64_t view_origin;      /* byte of the input that offsets of views count from */
    const uint8_t *view_from; /* where that is in memory; NULL while what is decoded does not stay there */
    kr_batch_header *batch;   /* one for each batch with rows; with KR_ONLY_MARKERS for every one */
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

/* The lowest n bytes of a word, n up to 8. */
KR_ALWAYS_INLINE uint64_t kr_low_bytes(uint64_t word, int64_t n) {
    return n >= 8 ? word : word & (((uint64_t)1 << (8 * n)) - 1);
}

/* A view that has its n bytes in it; those behind them are zero. */
KR_ALWAYS_INLINE kr_view kr_view_inline(const uint8_t *from, int64_t n, const int padded) {
    kr_view view = {(int32_t)n, {0}, 0, 0};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (padded) {
        uint64_t first = kr_low_bytes(kr_load_word(from), n < 4 ? n : 4);
        uint64_t rest = n > 4 ? kr_low_bytes(kr_load_word(from + 4), n - 4) : 0;
        memcpy(view.prefix, &first, sizeof view.prefix);
        memcpy(&view.buffer, &rest, sizeof rest);
        return view;
    }
#else
    (void)padded;
#endif
    memcpy((uint8_t *)&view + sizeof view.length, from, (size_t)n);
    return view;
}

/* Appends a view of n bytes, or null for n < 0. Bytes that do not stay where they are, so that there is no origin to
 * count from, are copied. `padded` says that KR_PADDING bytes behind the source can be read. */
KR_ALWAYS_INLINE void kr_put_view(kr_binary_column *c, int64_t row, const uint8_t *from, int64_t n,
                                  const uint8_t *origin, const int padded) {
    kr_view view = {(int32_t)n, {0}, KR_VIEW_OF_INPUT, 0};
    if (n > KR_VIEW_INLINE) {
        memcpy(view.prefix, from, sizeof view.prefix);
        if (KR_LIKELY(origin != 0)) {
            view.offset = (int32_t)(from - origin);
        } else {
            memcpy(c->data + c->end, from, (size_t)n);
            view.buffer = KR_VIEW_OF_DATA;
            view.offset = (int32_t)c->end;
            c->end += n;
        }
    } else if (n >= 0) {
        view = kr_view_inline(from, n, padded);
    } else {
        view.length = 0;
        kr_clear_bit(c->validity, row);
        c->nulls++;
    }
    c->views[row] = view;
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
    int64_t key_end, value_end, header_key_end, header_value_end;
} kr_mark;

static inline kr_mark kr_columns_mark(const kr_columns *c) {
    kr_mark m = {
        c->rows,    c->headers,   c->key.nulls,      c->value.nulls,     c->timestamp_nulls, c->header_value.nulls,
        c->key.end, c->value.end, c->header_key.end, c->header_value.end};
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
    c->key.end = m.key_end;
    c->value.end = m.value_end;
    c->header_key.end = m.header_key_end;
    c->header_value.end = m.header_value_end;
    c->key.nulls = m.key_nulls;
    c->value.nulls = m.value_nulls;
    c->timestamp_nulls = m.timestamp_nulls;
    c->header_value.nulls = m.header_value_nulls;
}

#endif
