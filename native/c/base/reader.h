/* A bounds-checked reader with a sticky first failure.
 *
 * Every read is written on kr_take, which is the only place that compares a length with the bytes left. The first
 * failure is kept with its position and moves `pos` to `end`, so that a caller may read a whole record and ask for
 * the status once.
 */
#ifndef KRAFTLOG_BASE_READER_H
#define KRAFTLOG_BASE_READER_H

#include "base/endian.h"
#include "base/status.h"
#include "base/varint.h"

typedef struct {
    const uint8_t *start; /* positions in errors count from here */
    const uint8_t *pos;
    const uint8_t *end;
    kr_error error;
} kr_reader;

static inline kr_reader kr_reader_make(const uint8_t *start, const uint8_t *pos, const uint8_t *end) {
    kr_reader r = {start, pos, end, {KR_OK, -1, 0, 0, 0, 0}};
    return r;
}

static inline int64_t kr_left(const kr_reader *r) { return r->end - r->pos; }

static inline void kr_reader_fail(kr_reader *r, int status, int64_t expected, int64_t actual) {
    if (r->error.status == KR_OK) kr_fail(&r->error, status, r->pos - r->start, expected, actual);
    r->pos = r->end;
}

/* The next n bytes, or NULL with the given status. */
static inline const uint8_t *kr_take_or(kr_reader *r, int64_t n, int status) {
    if (r->error.status != KR_OK) return 0;
    if (n < 0 || n > kr_left(r)) {
        if (status == KR_TRUNCATED_FIELD)
            kr_reader_fail(r, status, n, kr_left(r));
        else
            kr_reader_fail(r, status, kr_left(r), n);
        return 0;
    }
    const uint8_t *p = r->pos;
    r->pos += n;
    return p;
}

static inline const uint8_t *kr_take(kr_reader *r, int64_t n) { return kr_take_or(r, n, KR_TRUNCATED_FIELD); }

static inline int8_t kr_read_int8(kr_reader *r) {
    const uint8_t *p = kr_take(r, 1);
    return p ? (int8_t)*p : 0;
}

static inline int32_t kr_read_int32(kr_reader *r) {
    const uint8_t *p = kr_take(r, 4);
    return p ? kr_load_int32(p) : 0;
}

static inline int64_t kr_read_int64(kr_reader *r) {
    const uint8_t *p = kr_take(r, 8);
    return p ? kr_load_int64(p) : 0;
}

static inline uint64_t kr_read_groups(kr_reader *r, int max) {
    uint64_t x;
    const uint8_t *p = kr_uvarint(r->pos, r->end, max, &x);
    if (KR_LIKELY(p != 0)) {
        r->pos = p;
        return x;
    }
    if (r->error.status != KR_OK) return 0;
    if (kr_left(r) < max) {
        r->pos = r->end;
        kr_take(r, 1);
    } else {
        r->pos += max;
        kr_reader_fail(r, KR_VARINT_TOO_LONG, max, max);
    }
    return 0;
}

static inline int32_t kr_read_varint(kr_reader *r) { return kr_unzigzag32((uint32_t)kr_read_groups(r, KR_VARINT_MAX)); }
static inline int64_t kr_read_varlong(kr_reader *r) { return kr_unzigzag64(kr_read_groups(r, KR_VARLONG_MAX)); }

/* A length as Kafka reads it: below zero means null. Returns the bytes, or NULL for null and for a failure. */
static inline const uint8_t *kr_read_nullable(kr_reader *r, int32_t *length, int status) {
    *length = kr_read_varint(r);
    if (*length < 0 || r->error.status != KR_OK) {
        *length = -1;
        return 0;
    }
    return kr_take_or(r, *length, status);
}

#endif
