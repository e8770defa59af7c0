/* The kinds of columns that a decoder fills, each as Arrow lays it out, and how a value is appended. */
#ifndef KRAFTLOG_ARROW_COLUMN_KINDS_H
#define KRAFTLOG_ARROW_COLUMN_KINDS_H

#include "base/copy.h"

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

typedef int64_t *kr_int64_column; /* without nulls */
typedef int16_t *kr_int16_column;

/* Numbers that may be null. `validity` as above. */
typedef struct {
    int64_t *values;
    uint8_t *validity;
    int64_t nulls;
} kr_nullable_column;

/* A list of pairs for each row. `ends` is like that of a binary column, and counts pairs. */
typedef struct {
    int32_t *ends;
    int64_t count;
    kr_binary_column key, value;
} kr_headers_column;

static inline void kr_clear_bit(uint8_t *bits, int64_t i) { bits[i >> 3] &= (uint8_t)~(1u << (i & 7)); }

/* Sets the bits [from, to) again: rows that are taken back may have cleared some. */
static inline void kr_set_bits(uint8_t *bits, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) bits[i >> 3] |= (uint8_t)(1u << (i & 7));
}

/* Takes back the rows [from, to): the column becomes what it was `before`. */
KR_ALWAYS_INLINE void kr_take_back_binary(kr_binary_column *c, const kr_binary_column *before, int64_t from,
                                          int64_t to) {
    kr_set_bits(c->validity, from, to);
    c->nulls = before->nulls;
    c->end = before->end;
}

KR_ALWAYS_INLINE void kr_take_back_nullable(kr_nullable_column *c, const kr_nullable_column *before, int64_t from,
                                            int64_t to) {
    kr_set_bits(c->validity, from, to);
    c->nulls = before->nulls;
}

KR_ALWAYS_INLINE void kr_take_back_headers(kr_headers_column *c, const kr_headers_column *before, int64_t from,
                                           int64_t to) {
    kr_take_back_binary(&c->value, &before->value, before->count, c->count + 1);
    c->key.end = before->key.end;
    c->count = before->count;
    (void)from, (void)to;
}

/* Nothing is counted of numbers without nulls. */
#define kr_take_back_int64(c, before, from, to) ((void)0)
#define kr_take_back_int16(c, before, from, to) ((void)0)

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

/* Appends microseconds, or null for -1 and where they overflow. */
KR_ALWAYS_INLINE void kr_put_timestamp(kr_nullable_column *c, int64_t row, int64_t ms) {
    int64_t us;
    if (!KR_LIKELY(ms != -1 && !__builtin_mul_overflow(ms, 1000, &us))) {
        us = 0;
        kr_clear_bit(c->validity, row);
        c->nulls++;
    }
    c->values[row] = us;
}

#endif
