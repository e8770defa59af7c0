/* Walking over batch headers alone. */
#ifndef KRAFTLOG_SCANNER_H
#define KRAFTLOG_SCANNER_H

#include "batch.h"

/* Control batches are small, and much depends on a marker: their crc alone is cheap to check. */
enum kr_check { KR_CHECK_NOTHING, KR_CHECK_ALL, KR_CHECK_CONTROL };

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

/* Long batches are passed over by a small read of each header; what lies between is not read. */
static inline void kr_choose_ahead(kr_input *in, int64_t batch_bytes) {
    in->ahead = batch_bytes < in->long_batch ? in->window_bytes : 0;
}

/* Fills up to `max` headers. KR_CHUNK_FULL, KR_END, KR_UNREADABLE (the input failed; `position` is where), or the
 * status of a fault, which lies in [fault_at, position). */
static inline int kr_scanner_run(kr_scanner *s, kr_batch_header *out, int64_t max, int64_t *count) {
    int64_t n = 0, next, at = s->position;
    int status = KR_END;
    while (s->position < s->end) {
        if (n == max) {
            status = KR_CHUNK_FULL;
            break;
        }
        at = s->position;
        status = kr_step(&s->input, at, &out[n], &s->error, &next);
        if (s->input.failed) {
            status = KR_UNREADABLE;
            break;
        }
        s->position = next;
        if (status == KR_TORN_TAIL) {
            s->torn_at = at;
            status = KR_END;
            break;
        }
        if (status != KR_OK) {
            s->fault_at = at;
            break;
        }
        kr_prefetch_headers(&s->input, &out[n], next);
        if (s->check != KR_CHECK_ALL) kr_choose_ahead(&s->input, next - at);
        if (s->check == KR_CHECK_CONTROL && kr_is_control(&out[n])) {
            out[n].crc_ok = kr_batch_crc(&s->input, &out[n]) == out[n].crc;
            if (s->input.failed) break;
        }
        if (s->check == KR_CHECK_ALL) {
            uint32_t crc = kr_batch_crc(&s->input, &out[n]);
            out[n].crc_ok = crc == out[n].crc;
            if (!out[n].crc_ok) {
                status = kr_fail(&s->error, KR_BAD_CRC, at, out[n].crc, crc);
                s->fault_at = at;
                s->position = kr_behind_bad_batch(&s->input, &out[n]);
                if (s->input.failed) break;
                n++; /* the header is a row all the same, with crc_ok false */
                break;
            }
        }
        n++;
        status = KR_END;
    }
    if (s->input.failed) {
        s->position = at;
        status = KR_UNREADABLE;
    }
    *count = n;
    return status;
}

#endif
