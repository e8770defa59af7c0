/* The records of a batch that a cleaner keeps, behind a new base timestamp, as MemoryRecords.filterTo writes them. All
 * of a record but its length and its timestamp delta is copied. */
#ifndef KRAFTLOG_CLEANING_KEPT_RECORDS_H
#define KRAFTLOG_CLEANING_KEPT_RECORDS_H

#include "base/copy.h"
#include "base/endian.h"
#include "base/reader.h"

typedef struct {
    const uint8_t *records; /* decompressed */
    int64_t size;
    const uint8_t *keeps; /* of each record, whether it stays */
    int64_t count;
    int64_t base_timestamp;
} kr_filter;

typedef struct {
    int64_t kept, size;
    int64_t base_timestamp; /* that their deltas count from */
    int64_t max_timestamp;  /* of those that stay */
} kr_kept;

typedef struct {
    const uint8_t *rest, *end; /* what follows the timestamp delta */
    int64_t timestamp;
    uint8_t attributes;
} kr_framed_record;

KR_ALWAYS_INLINE int kr_record_frame(kr_reader *in, int64_t base_timestamp, kr_framed_record *r) {
    int32_t length = kr_read_varint(in);
    const uint8_t *body = kr_take_or(in, length, KR_BAD_RECORD_LENGTH);
    if (!body) return 0;
    kr_reader inner = kr_reader_make(in->start, body, body + length);
    r->attributes = (uint8_t)kr_read_int8(&inner);
    r->timestamp = kr_add_wrapping(base_timestamp, kr_read_varlong(&inner));
    r->rest = inner.pos;
    r->end = body + length;
    return inner.error.status == KR_OK;
}

static inline int64_t kr_timestamp_delta(const kr_framed_record *r, const kr_kept *k) {
    return (int64_t)((uint64_t)r->timestamp - (uint64_t)k->base_timestamp);
}

static inline int64_t kr_kept_body(const kr_framed_record *r, int64_t delta) {
    return 1 + kr_varlong_size(delta) + (r->end - r->rest);
}

/* What stays, and how many bytes it takes. Its base timestamp is that of the first record that stays, unless one is
 * `given`. Returns 0 when there are not as many records as `count` says, nothing stays, or it is too large for a batch.
 */
static int kr_kept_measure(const kr_filter *f, int is_given, int64_t given, kr_kept *k) {
    kr_reader in = kr_reader_make(f->records, f->records, f->records + f->size);
    kr_framed_record r;
    k->kept = k->size = 0;
    if (!f->size) return 0;
    k->base_timestamp = given;
    for (int64_t i = 0; i < f->count; i++) {
        if (!kr_record_frame(&in, f->base_timestamp, &r)) return 0;
        if (!f->keeps[i]) continue;
        if (!k->kept && !is_given) k->base_timestamp = r.timestamp;
        if (!k->kept || r.timestamp > k->max_timestamp) k->max_timestamp = r.timestamp;
        int64_t body = kr_kept_body(&r, kr_timestamp_delta(&r, k));
        if (body > INT32_MAX) return 0;
        k->size += kr_varint_size((int32_t)body) + body;
        k->kept++;
    }
    return in.pos == in.end && k->kept && k->size <= INT32_MAX;
}

/* Writes what was measured, k->size bytes. */
static void kr_kept_write(const kr_filter *f, const kr_kept *k, uint8_t *to) {
    kr_reader in = kr_reader_make(f->records, f->records, f->records + f->size);
    kr_framed_record r;
    for (int64_t i = 0; i < f->count && kr_record_frame(&in, f->base_timestamp, &r); i++) {
        if (!f->keeps[i]) continue;
        int64_t delta = kr_timestamp_delta(&r, k);
        to = kr_put_varint(to, (int32_t)kr_kept_body(&r, delta));
        *to++ = r.attributes;
        to = kr_put_varlong(to, delta);
        memcpy(to, r.rest, (size_t)(r.end - r.rest));
        to += r.end - r.rest;
    }
}

#endif
