/* Decoding what is committed of a file whose transactions are not known before.
 *
 *            position              known                     ahead->position
 *   .........|  is decided         |  in the window or not   |  not looked at
 *
 * Batches without a transaction are decoded as they come. Where the decoder meets another one, the headers behind it
 * are looked at. Where a transaction that begins there has not ended in the window, the next bytes of the file are read
 * behind it, to be decoded from there later. That way the window gets as large as KR_FOLLOW_WINDOWS; what is further
 * away is looked at by a small read of each header, until the transaction has ended. What is decoded up to `known` is
 * then decided.
 */
#ifndef KRAFTLOG_RECORD_FOLLOW_H
#define KRAFTLOG_RECORD_FOLLOW_H

#include <stdlib.h>

#include "batch/lookahead.h"
#include "record/decoder.h"

enum {
    KR_FOLLOW_STEP = 64 << 10, /* bytes of headers between two looks at what is still open */
    KR_FOLLOW_WINDOWS = 16,    /* usual windows that are held at most; the block can get twice as large */
    KR_FOLLOW_PARTS = 4        /* parts of a usual window by which it grows */
};

typedef struct {
    kr_lookahead *ahead;
    kr_input near; /* the decoder's window as it was last, and the last header in it */
    kr_input *far; /* of the same file, with a window of its own */
    kr_aborted *aborted;
    int64_t aborted_capacity;
} kr_follow;

/* The first position at which a transaction begins that has not ended; INT64_MAX when there is none. */
static inline int64_t kr_first_open(const kr_open_table *t) {
    int64_t first = INT64_MAX;
    for (int64_t i = 0; t->count && i < t->capacity; i++)
        if (t->slots[i].producer_id != KR_NO_PRODUCER && t->slots[i].first_position < first)
            first = t->slots[i].first_position;
    return first;
}

static int kr_compare_aborted(const void *a, const void *b) {
    const kr_aborted *x = (const kr_aborted *)a, *y = (const kr_aborted *)b;
    if (x->producer_id != y->producer_id) return x->producer_id < y->producer_id ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Gives the decoder the aborted transactions that end behind its position, and forgets those that end before it. */
static inline int kr_follow_hide(kr_follow *f, kr_decoder *d) {
    kr_lookahead *l = f->ahead;
    int64_t kept = 0;
    for (int64_t i = 0; i < l->ended_count; i++) {
        const kr_ended_transaction *t = &l->ended[i];
        if (t->marker_position > d->position && t->state != KR_COMMIT_MARKER && t->first_position >= 0)
            l->ended[kept++] = *t;
    }
    l->ended_count = kept;
    if (kept > f->aborted_capacity) return KR_NEEDS_ROOM;
    for (int64_t i = 0; i < kept; i++) {
        kr_aborted one = {l->ended[i].producer_id, l->ended[i].first_position, l->ended[i].marker_position};
        f->aborted[i] = one;
    }
    if (kept > 1) qsort(f->aborted, (size_t)kept, sizeof *f->aborted, kr_compare_aborted);
    d->aborted = f->aborted;
    d->aborted_count = kept;
    return KR_OK;
}

static int kr_window_ends(kr_input *in, int64_t a, int64_t b) {
    (void)in;
    (void)a;
    (void)b;
    return -1;
}

/* Looks at the headers in the window: up to the first that is not whole, or is not followed by a whole one. */
static inline int kr_follow_near(kr_follow *f, const kr_decoder *d) {
    int64_t seen_at = f->near.seen_at;
    uint8_t seen[KR_SEEN_BYTES];
    memcpy(seen, f->near.seen, KR_SEEN_BYTES);
    f->near = d->input;
    if (seen_at > d->input.seen_at) {
        f->near.seen_at = seen_at;
        memcpy(f->near.seen, seen, KR_SEEN_BYTES);
    }
    if (f->near.move) f->near.move = kr_window_ends;
    return kr_lookahead_run(f->ahead, &f->near, d->input.size);
}

/* Reads on up to byte `end`, behind what is in the window. */
static inline int kr_follow_read(kr_follow *f, kr_decoder *d, int64_t end) {
    kr_input *in = &d->input;
    if (f->near.seen_at > in->seen_at) {
        in->seen_at = f->near.seen_at;
        memcpy(in->seen, f->near.seen, KR_SEEN_BYTES);
    }
    in->is_held = 1;
    int is_there = kr_need(in, d->position, end);
    in->is_held = 0;
    return is_there ? KR_OK : KR_UNREADABLE;
}

/* Looks at more headers. As kr_lookahead_run. */
static inline int kr_follow_on(kr_follow *f, kr_decoder *d) {
    int64_t from = f->ahead->position, until = d->input.until, usual = d->input.window_bytes;
    if (from >= d->input.size) return KR_END;
    if (from < until) {
        int status = kr_follow_near(f, d);
        if (status != KR_UNREADABLE || f->ahead->position > from) return status == KR_UNREADABLE ? KR_OK : status;
    }
    int64_t end = (from > until ? from : until) + usual / KR_FOLLOW_PARTS + 1;
    if (end > d->input.size) end = d->input.size;
    if (end > until && end - d->position <= KR_FOLLOW_WINDOWS * usual) return kr_follow_read(f, d, end);
    return kr_lookahead_run(f->ahead, f->far, from + KR_FOLLOW_STEP);
}

/* After KR_NEEDS_TRANSACTIONS: KR_OK, and the decoder can go on; KR_NEEDS_ROOM, for tables or f->aborted, and it is to
 * be called again; KR_UNREADABLE; KR_END, when a transaction that begins at the decoder's position has no end in the
 * file. */
static inline int kr_follow_run(kr_follow *f, kr_decoder *d) {
    int status = KR_OK;
    if (f->ahead->position < d->position) f->ahead->position = d->position;
    for (;;) {
        int64_t open = kr_first_open(&f->ahead->open);
        d->known = open < f->ahead->position ? open : f->ahead->position;
        if (d->known > d->position) return kr_follow_hide(f, d);
        if (status == KR_END) return KR_END;
        status = kr_follow_on(f, d);
        if (status == KR_NEEDS_ROOM || status == KR_UNREADABLE) return status;
    }
}

#endif
