/* Columns of Arrow that others own: what a caller has checked and lends for the time of a call. Value i is
 * data[ends[i], ends[i + 1]). Columns of all layouts of Arrow, of which nothing is checked yet, are in
 * arrow/text_column.h. */
#ifndef KRAFTLOG_ARROW_LENT_H
#define KRAFTLOG_ARROW_LENT_H

#include <stdint.h>

#include "base/varint.h"

/* Whether a bit of Arrow's is set. */
KR_ALWAYS_INLINE int kr_has_bit(const uint8_t *bits, int64_t at) { return bits[at >> 3] >> (at & 7) & 1; }

/* Whether a value is there, by bits of which NULL stands for all being set. */
KR_ALWAYS_INLINE int kr_is_valid(const uint8_t *validity, int64_t at) { return !validity || kr_has_bit(validity, at); }

/* A column of binary. */
typedef struct {
    const int32_t *ends; /* NULL: every value is null */
    const uint8_t *data;
    int64_t data_size;       /* for those that ask what may be read behind a value */
    const uint8_t *validity; /* NULL: nothing is null */
    int64_t validity_at;     /* bit of the first value */
} kr_lent_binary;

/* Whether a value is null, in a column that has ends. */
KR_ALWAYS_INLINE int kr_lent_is_null(const kr_lent_binary *v, int64_t i) {
    return !kr_is_valid(v->validity, v->validity_at + i);
}

/* The length of a value; -1 when it is null. The encoder asks it of each: kr_is_valid takes 4 % more instructions. */
KR_ALWAYS_INLINE int64_t kr_lent_length(const kr_lent_binary *v, int64_t i) {
    if (!v->ends) return -1;
    if (v->validity) {
        if (!kr_has_bit(v->validity, v->validity_at + i)) return -1;
    }
    return (int64_t)v->ends[i + 1] - v->ends[i];
}

/* A column of large_binary, whose nulls are its caller's concern. Ends of 64 bits: it may hold a whole table. */
typedef struct {
    int64_t rows;
    const int64_t *ends; /* rows + 1 */
    const uint8_t *data;
    int64_t data_size;
} kr_lent_large;

/* The first row whose value is not within the data, else -1. What takes such a column does not look again. */
static inline int64_t kr_lent_out_of_bounds(const kr_lent_large *v) {
    for (int64_t i = 0; i < v->rows; i++)
        if (v->ends[i] < 0 || v->ends[i] > v->ends[i + 1] || v->ends[i + 1] > v->data_size) return i;
    return -1;
}

#endif
