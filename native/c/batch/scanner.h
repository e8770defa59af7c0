/* Walking over batch headers alone. */
#ifndef KRAFTLOG_BATCH_SCANNER_H
#define KRAFTLOG_BATCH_SCANNER_H

#include "batch/step.h"

typedef struct {
    kr_input input;
    int64_t position, end;
    int8_t check;   /* a kr_check */
    kr_error error; /* of the fault that stopped the last run */
    int64_t fault_at, torn_at;
} kr_scanner;

enum { KR_PREFETCH_AHEAD = 8 }; /* batches */

/* Batches of one producer are much alike, so that a header some batches ahead is asked for early: where it would stand
 * if all of them were as long as this one. */
static inline void kr_prefetch_headers(const kr_input *in, const kr_batch_header *h, int64_t next) {
    int64_t guess = next + KR_PREFETCH_AHEAD * ((int64_t)h->batch_length + KR_LOG_OVERHEAD);
    if (guess + 128 < in->until) {
        __builtin_prefetch(in->start + guess);
        __builtin_prefetch(in->start + guess + 64);
    }
}

/* One step. KR_END also at a torn tail, which is noted. On KR_UNREADABLE the position stays. */
static inline int kr_scanner_next(kr_scanner *s, kr_batch_header *h) {
    int64_t next, at = s->position;
    int status = kr_batch_next(&s->input, at, s->check, h, &s->error, &next);
    if (s->input.failed) return KR_UNREADABLE;
    s->position = next;
    if (status == KR_TORN_TAIL) {
        s->torn_at = at;
        return KR_END;
    }
    if (status != KR_OK) {
        s->fault_at = at;
        return status;
    }
    kr_prefetch_headers(&s->input, h, next);
    if (s->check != KR_CHECK_ALL) kr_choose_ahead(&s->input, next - at);
    return KR_OK;
}

/* Fills up to `max` headers. KR_CHUNK_FULL, KR_END, KR_UNREADABLE (the input failed; `position` is where), or the
 * status of a fault, which lies in [fault_at, position). A header whose crc does not match is among them, the last. */
static inline int kr_scanner_run(kr_scanner *s, kr_batch_header *out, int64_t max, int64_t *count) {
    int status = KR_OK;
    int64_t n = 0;
    while (status == KR_OK && n < max && s->position < s->end) {
        status = kr_scanner_next(s, &out[n]);
        n += status == KR_OK || status == KR_BAD_CRC;
    }
    *count = n;
    return status != KR_OK ? status : s->position < s->end ? KR_CHUNK_FULL : KR_END;
}

/* Goes on to the first batch at or behind `least`; its position, or -1 when the walk ends before, at a fault, too. */
static inline int64_t kr_scanner_skip(kr_scanner *s, int64_t least) {
    kr_batch_header h;
    int status = KR_OK;
    while (s->position < s->end && status == KR_OK) {
        int64_t at = s->position;
        status = kr_scanner_next(s, &h);
        if (at >= least && (status == KR_OK || status == KR_BAD_CRC)) return at;
        if (status == KR_BAD_CRC && s->error.lost != KR_REST) status = KR_OK;
    }
    if (status != KR_UNREADABLE) s->position = s->end;
    return -1;
}

#endif
