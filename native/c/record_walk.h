/* The records of one batch of magic 2, walked once: checked, and put into columns. */
#ifndef KRAFTLOG_RECORD_WALK_H
#define KRAFTLOG_RECORD_WALK_H

#include "record_columns.h"

/* A checksum that runs ahead of the walk, a window at a time, so that the walk finds its bytes in the first-level
 * cache. Nothing that was put out counts before the sum over the whole batch has been compared. */
typedef struct {
    const uint8_t *pos, *end;
    uint32_t crc;
} kr_crc_ahead;

enum { KR_CRC_WINDOW = 16 * 768 };

static inline void kr_crc_advance(kr_crc_ahead *a) {
    int64_t n = a->end - a->pos;
    if (n > KR_CRC_WINDOW + KR_CRC_WINDOW / 2) n = KR_CRC_WINDOW;
    a->crc = kr_crc32c(a->crc, a->pos, (size_t)n);
    a->pos += n;
}

/* Where a walk stands. */
typedef struct {
    const uint8_t *p, *end;
    const uint8_t *padded_end; /* KR_PADDING bytes before the end of what can be read */
    int32_t i, count;
    kr_crc_ahead ahead;
} kr_walk;

KR_ALWAYS_INLINE void kr_run_ahead(kr_walk *w) {
    if (w->p >= w->ahead.pos && w->ahead.pos < w->ahead.end) kr_crc_advance(&w->ahead);
}

/* The hot loop: well-formed records, until one is not. All that it works on is held in local variables, because a store
 * of bytes might otherwise change any of it as far as the compiler knows. */
KR_ALWAYS_INLINE void kr_walk_fast(kr_walk *walk, kr_columns *columns, const kr_batch_header *header,
                                   const uint32_t want) {
    kr_walk w = *walk;
    kr_columns c = *columns;
    const kr_batch_header h = *header;
    const uint8_t *const end = w.end < w.padded_end ? w.end : w.padded_end;
    for (; w.i < w.count; w.i++) {
        kr_record r;
        kr_run_ahead(&w);
        if (!KR_LIKELY(kr_record_fast(w.p, end, &r) && kr_record_put(&c, &h, &r, 1, want))) break;
        w.p = r.end;
    }
    *columns = c;
    *walk = w;
}

/* One record by the careful parser. Returns 0 when the walk is over: `status` and `e` say why. */
static __attribute__((noinline, cold)) int kr_walk_careful(kr_walk *w, kr_columns *c, const kr_batch_header *h,
                                                           const uint8_t *start, uint32_t want, int *status,
                                                           kr_error *e) {
    kr_record r;
    kr_reader in = kr_reader_make(start, w->p, w->end);
    kr_record_read(&in, &r);
    if ((want & KR_WANT_HEADERS) && in.error.status == KR_OK) { /* keys may grow beyond what Arrow's ends can count */
        int64_t room = (INT32_MAX - c->header_key.end) / KR_UTF8_GROWTH;
        if (r.end - r.headers > room) kr_reader_fail(&in, KR_BAD_HEADER_KEY_LENGTH, room, r.end - r.headers);
    }
    if (in.error.status == KR_OK) {
        if ((want & KR_WANT_HEADERS) && !kr_headers_fit(c, &r)) {
            *status = KR_NEEDS_ROOM;
            return 0;
        }
        kr_record_put(c, h, &r, 0, want);
    } else {
        *status = in.error.status;
        *e = in.error;
        e->record_index = w->i;
        e->lost = w->end - w->p;
        if (!r.end || !kr_rest_is_sound(r.end, w->end, (int64_t)w->count - w->i - 1)) return 0;
        e->lost = r.end - w->p;
    }
    w->p = r.end;
    w->i++;
    return 1;
}

/* Walks the records of `w`; positions in faults count from `start`. KR_OK; KR_NEEDS_ROOM when the header columns are
 * full (the caller takes the rows back); or the fault of the first bad record, with the rows before it, and those
 * behind it if they are sound, kept. */
KR_ALWAYS_INLINE int kr_records_walk(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                     kr_error *e, const uint32_t want) {
    int status = KR_OK;
    for (;;) {
        kr_walk_fast(w, c, h, want);
        if (w->i >= w->count || w->p >= w->end) break;
        kr_run_ahead(w);
        if (!kr_walk_careful(w, c, h, start, want, &status, e)) return status;
    }
    if (status != KR_OK) return status;
    if (w->i < w->count) return kr_fail(e, KR_MISSING_RECORDS, w->p - start, w->count, w->i);
    if (w->p < w->end) {
        kr_fail(e, KR_TRAILING_BYTES, w->p - start, w->count, w->end - w->p);
        e->lost = w->end - w->p;
        return KR_TRAILING_BYTES;
    }
    return KR_OK;
}

#define KR_WANT_COMMON  (KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET | KR_WANT_TIMESTAMP)
#define KR_WANT_MARKERS (KR_ONLY_MARKERS | KR_WANT_VALUE | KR_WANT_OFFSET)

static inline int kr_records_decode(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                    kr_error *e, uint32_t want) {
    switch (want) { /* the usual sets get a loop of their own */
    case KR_WANT_COMMON:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON);
    case KR_WANT_COMMON | KR_WANT_HEADERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON | KR_WANT_HEADERS);
    case KR_WANT_MARKERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_MARKERS);
    default:
        return kr_records_walk(w, c, h, start, e, want);
    }
}

#endif
