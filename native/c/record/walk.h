/* The records of one batch of magic 2, walked once: checked, and put into columns. */
#ifndef KRAFTLOG_RECORD_WALK_H
#define KRAFTLOG_RECORD_WALK_H

#include "record/put.h"
#include "record/shape.h"

/* A checksum that runs ahead of the walk, a window at a time, so that the walk finds its bytes in the second-level
 * cache. In windows that fit the first level memory would be read with more breaks. Nothing that was put out counts
 * before the sum over the whole batch has been compared. */
typedef struct {
    const uint8_t *pos, *end;
    uint32_t crc;
} kr_crc_ahead;

enum { KR_CRC_WINDOW = 64 << 10 };

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
    int strict; /* the first bad record ends it, whatever is behind */
} kr_walk;

KR_ALWAYS_INLINE void kr_run_ahead(kr_walk *w) {
    if (w->p >= w->ahead.pos && w->ahead.pos < w->ahead.end) kr_crc_advance(&w->ahead);
}

/* Column sets that are usual, each with loops of its own. */
#define KR_WANT_COMMON  (KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET | KR_WANT_TIMESTAMP)
#define KR_WANT_KEYED   (KR_EVERY_BATCH | KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET)
#define KR_WANT_VALUES  (KR_EVERY_BATCH | KR_WANT_VALUE | KR_WANT_OFFSET)
#define KR_WANT_MARKERS (KR_ONLY_MARKERS | KR_WANT_VALUES)

/* Well-formed records, until one is not. */
KR_ALWAYS_INLINE void kr_walk_on(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint32_t want) {
    const uint8_t *const end = w->end < w->padded_end ? w->end : w->padded_end;
    for (; w->i < w->count; w->i++) {
        kr_record r;
        kr_run_ahead(w);
        if (!KR_LIKELY(kr_record_fast(w->p, end, &r) && kr_record_put(c, h, &r, 1, want))) break;
        w->p = r.end;
    }
}

/* The hot loop. All that it works on is held in local variables, because a store of bytes might otherwise change any of
 * it as far as the compiler knows. */
KR_ALWAYS_INLINE void kr_walk_fast(kr_walk *walk, kr_columns *columns, const kr_batch_header *header,
                                   const uint32_t want) {
    kr_walk w = *walk;
    kr_columns c = *columns;
    const kr_batch_header h = *header;
    kr_walk_on(&w, &c, &h, want);
    *columns = c;
    *walk = w;
}

enum { KR_FEW_RECORDS = 4 };

/* The same for a batch of which the copies would take longer than its records. */
static __attribute__((noinline)) void kr_walk_few(kr_walk *w, kr_columns *c, const kr_batch_header *h, uint32_t want) {
    if (want == KR_WANT_MARKERS)
        kr_walk_on(w, c, h, KR_WANT_MARKERS);
    else if (want == KR_WANT_VALUES)
        kr_walk_on(w, c, h, KR_WANT_VALUES);
    else
        kr_walk_on(w, c, h, want);
}

/* One record by the careful parser. Returns 0 when the walk is over: `status` and `e` say why. */
static __attribute__((noinline, cold)) int kr_walk_careful(kr_walk *w, kr_columns *c, const kr_batch_header *h,
                                                           const uint8_t *start, uint32_t want, int *status,
                                                           kr_error *e) {
    kr_record r;
    kr_reader in = kr_reader_make(start, w->p, w->end);
    kr_record_read(&in, &r);
    if ((want & KR_WANT_HEADERS) && in.error.status == KR_OK) { /* keys may grow beyond what Arrow's ends can count */
        int64_t room = (INT32_MAX - c->headers.key.end) / KR_UTF8_GROWTH;
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
        int is_alone = r.end && kr_rest_is_sound(r.end, w->end, (int64_t)w->count - w->i - 1);
        e->lost = (is_alone ? r.end : w->end) - w->p;
        if (!is_alone || w->strict) return 0;
    }
    w->p = r.end;
    w->i++;
    return 1;
}

/* Walks the records of `w`; positions in faults count from `start`. KR_OK; KR_NEEDS_ROOM when the header columns are
 * full (the caller takes the rows back); or the fault of the first bad record, with the rows before it, and, unless the
 * walk is strict, those behind it if they are sound, kept. */
KR_ALWAYS_INLINE int kr_records_walk(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                     kr_error *e, const uint32_t want) {
    int status = KR_OK;
    for (;;) {
        if (w->count > KR_FEW_RECORDS)
            kr_walk_fast(w, c, h, want);
        else
            kr_walk_few(w, c, h, want);
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

#if defined(__x86_64__)

enum { KR_SHAPES_FROM = 8 /* records */ };

/* As kr_walk_fast, of a batch that is none of control records, for as long as few records differ in shape from the one
 * before. */
KR_TARGET_SHAPE KR_ALWAYS_INLINE void kr_walk_shaped(kr_walk *walk, kr_columns *columns, const kr_batch_header *header,
                                                     const uint32_t want) {
    kr_walk w = *walk;
    kr_columns c = *columns;
    kr_batch_header h = *header;
    const uint8_t *const end = w.end < w.padded_end ? w.end : w.padded_end;
    const uint8_t *stop = w.p; /* where bytes are still to be summed, or the last record ends */
    const int with_timestamps = !(h.attributes & KR_TIMESTAMP_TYPE_BIT);
    int32_t misses = 0;
    kr_shape shape;
    if (!with_timestamps) h.base_timestamp = h.max_timestamp;
    h.attributes = 0;
    if (w.p >= end || !kr_shape_learn(&shape, w.p, end, with_timestamps)) return;
    while (w.i < w.count) {
        kr_record r;
        if (!KR_LIKELY(w.p < stop)) {
            if (w.p >= end) break;
            kr_run_ahead(&w);
            stop = w.ahead.pos < w.ahead.end && w.ahead.pos < end ? w.ahead.pos : end;
            continue;
        }
        if (!KR_LIKELY(kr_record_shaped(w.p, end, &shape, &r))) {
            if (++misses > 4 + (w.i >> 4) || !kr_shape_learn(&shape, w.p, end, with_timestamps)) break;
            continue;
        }
        kr_record_put(&c, &h, &r, 1, want);
        w.p = r.end;
        w.i++;
    }
    *columns = c;
    *walk = w;
}

KR_TARGET_SHAPE static __attribute__((noinline)) void kr_walk_by_shape(kr_walk *w, kr_columns *c,
                                                                       const kr_batch_header *h, uint32_t want) {
    if (want == KR_WANT_COMMON)
        kr_walk_shaped(w, c, h, KR_WANT_COMMON);
    else if (want == (KR_WANT_COMMON | KR_WANT_HEADERS))
        kr_walk_shaped(w, c, h, KR_WANT_COMMON | KR_WANT_HEADERS);
    else if (want == (KR_WANT_COMMON | KR_VIEWS))
        kr_walk_shaped(w, c, h, KR_WANT_COMMON | KR_VIEWS);
    else if (want == KR_WANT_VALUES)
        kr_walk_shaped(w, c, h, KR_WANT_VALUES);
    else if (want == KR_WANT_KEYED)
        kr_walk_shaped(w, c, h, KR_WANT_KEYED);
    else
        kr_walk_shaped(w, c, h, want);
}

static inline void kr_walk_shapes(kr_walk *w, kr_columns *c, const kr_batch_header *h, uint32_t want) {
    if (w->count >= KR_SHAPES_FROM && !kr_is_control(h) && kr_shape_is_fast()) kr_walk_by_shape(w, c, h, want);
}

#else

static inline void kr_walk_shapes(kr_walk *w, kr_columns *c, const kr_batch_header *h, uint32_t want) {}

#endif

static inline int kr_records_decode(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                    kr_error *e, uint32_t want) {
    kr_walk_shapes(w, c, h, want);
    switch (want) {
    case KR_WANT_COMMON:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON);
    case KR_WANT_COMMON | KR_WANT_HEADERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON | KR_WANT_HEADERS);
    case KR_WANT_COMMON | KR_VIEWS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON | KR_VIEWS);
    case KR_WANT_MARKERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_MARKERS);
    case KR_WANT_VALUES:
        return kr_records_walk(w, c, h, start, e, KR_WANT_VALUES);
    case KR_WANT_KEYED:
        return kr_records_walk(w, c, h, start, e, KR_WANT_KEYED);
    default:
        return kr_records_walk(w, c, h, start, e, want);
    }
}

#endif
