/* The chain of headers of a file: each leads to the next one by its length. Only the headers are read, not what lies
 * between them, so that a cold file of gigabytes is walked through with a few thousand small reads.
 *
 *   | header | records ...   | header | records ...        | header | records
 *   ^ batch_length leads to  ^ and so on: an unbroken chain of plausible headers, each with an offset that follows
 *
 * Over memory that is there already, scanner.h is faster where batches are small. */
#ifndef KRAFTLOG_HEADER_CHAIN_H
#define KRAFTLOG_HEADER_CHAIN_H

#include <errno.h>
#include <unistd.h>

#include "batch.h"

enum {
    KR_CHAIN_HEADER = KR_RECORD_BATCH_OVERHEAD + KR_CONTROL_PREFIX, /* what kr_header_read may look at */
    KR_CHAIN_WINDOW = 4096
};

typedef struct {
    int file;
    int64_t size;          /* of the file */
    int64_t position, end; /* of the next header; where the walk ends */
    kr_batch_header last;  /* its position is -1 before the first */
    int64_t window_at, window_size;
    uint8_t window[KR_CHAIN_WINDOW];
} kr_header_chain;

static inline void kr_header_chain_begin(kr_header_chain *c, int file, int64_t size, int64_t start, int64_t end) {
    c->file = file;
    c->size = size;
    c->position = start;
    c->end = end < size ? end : size;
    c->last.position = -1;
    c->window_at = c->window_size = 0;
}

/* Reads up to `wanted` bytes at the position; less where the file ends, or cannot be read. */
static inline void kr_header_chain_fill(kr_header_chain *c, int64_t wanted) {
    c->window_at = c->position;
    c->window_size = 0;
    while (c->window_size < wanted) {
        ssize_t got = pread(c->file, c->window + c->window_size, (size_t)(wanted - c->window_size),
                            (off_t)(c->window_at + c->window_size));
        if (got == 0 || (got < 0 && errno != EINTR)) return;
        if (got > 0) c->window_size += got;
    }
}

/* Whether a header stands at the position that goes on with the chain. */
static inline int kr_header_chain_goes_on(kr_header_chain *c, kr_batch_header *h) {
    int64_t left = c->size - c->position, at = c->position - c->window_at;
    int64_t needed = left < KR_CHAIN_HEADER ? left : KR_CHAIN_HEADER;
    if (at < 0 || at + needed > c->window_size) {
        int is_dense = c->last.position >= 0 && c->position - c->last.position < KR_CHAIN_WINDOW;
        kr_header_chain_fill(c, is_dense && left > KR_CHAIN_WINDOW ? KR_CHAIN_WINDOW : needed);
        at = 0;
    }
    if (at + needed > c->window_size) return 0;
    kr_input in = kr_input_make(c->window + at, left); /* no more of it is looked at than is needed */
    if (c->last.position >= 0 && !kr_is_followed(&in, &c->last, 0)) return 0;
    if (!kr_is_plausible(&in, 0, h)) return 0;
    h->position = c->position;
    return 1;
}

/* The first batch of the chain that starts at or behind `least`; -1 when the chain breaks, or ends, before. */
static inline int64_t kr_header_chain_next(kr_header_chain *c, int64_t least) {
    kr_batch_header h;
    while (c->position < c->end) {
        if (!kr_header_chain_goes_on(c, &h)) {
            c->end = c->position;
            return -1;
        }
        c->last = h;
        c->position = kr_batch_end(&h);
        if (h.position >= least) return h.position;
    }
    return -1;
}

#endif
