/* Whole arrays of varints and varlongs, one behind the other. */
#ifndef KRAFTLOG_ARROW_VARINT_COLUMN_H
#define KRAFTLOG_ARROW_VARINT_COLUMN_H

#include "base/reader.h"

static inline int64_t kr_varints_size(const int32_t *values, int64_t n) {
    int64_t size = 0;
    for (int64_t i = 0; i < n; i++) size += kr_varint_size(values[i]);
    return size;
}

static inline int64_t kr_varlongs_size(const int64_t *values, int64_t n) {
    int64_t size = 0;
    for (int64_t i = 0; i < n; i++) size += kr_varlong_size(values[i]);
    return size;
}

static inline void kr_varints_encode(const int32_t *values, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) out = kr_put_varint(out, values[i]);
}

static inline void kr_varlongs_encode(const int64_t *values, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) out = kr_put_varlong(out, values[i]);
}

/* Values in the input, seen from the bytes that end one; a cut-off last value is not counted. */
static inline int64_t kr_varints_count(const uint8_t *p, int64_t size) {
    int64_t n = 0;
    for (int64_t i = 0; i < size; i++) n += p[i] < 0x80;
    return n;
}

/* `out` has room for kr_varints_count values. All of the input must be used up. */
static inline int kr_varints_decode(const uint8_t *p, int64_t size, int32_t *out, kr_error *e) {
    const uint8_t *at = p, *next;
    for (; size - (at - p) >= KR_VARINT_MAX && (next = kr_varint_unchecked(at, out)); at = next) out++;
    kr_reader in = kr_reader_make(p, at, p + size);
    while (kr_left(&in) && in.error.status == KR_OK) {
        int32_t value = kr_read_varint(&in);
        if (in.error.status == KR_OK) *out++ = value;
    }
    *e = in.error;
    return e->status;
}

static inline int kr_varlongs_decode(const uint8_t *p, int64_t size, int64_t *out, kr_error *e) {
    const uint8_t *at = p, *next;
    for (; size - (at - p) >= KR_VARLONG_MAX && (next = kr_varlong_unchecked(at, out)); at = next) out++;
    kr_reader in = kr_reader_make(p, at, p + size);
    while (kr_left(&in) && in.error.status == KR_OK) {
        int64_t value = kr_read_varlong(&in);
        if (in.error.status == KR_OK) *out++ = value;
    }
    *e = in.error;
    return e->status;
}

#endif
