/* Decoding what is committed of a file whose transactions are not known before.
 *
 *            position          known                    ahead->position
 *   .........|  in the window  |  headers by small reads |  not looked at
 *
 * The headers in the decoder's window are looked at when it comes there, which costs next to nothing, as their bytes
 * are read anyway. Only where transactions that began in it have not ended yet, further headers of the file are read,
 * until all of these have ended. What is decoded up to `known` is then decided.
 */
#ifndef KRAFTLOG_FOLLOW_H
#define KRAFTLOG_FOLLOW_H

#include <stdlib.h>

#include "decoder.h"
#include "lookahead.h"

enum { KR_FOLLOW_STEP = 64 << 10 }; /* bytes of headers between two looks at what is still open */

typedef struct {
    kr_lookahead *ahead;
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

/* Looks at the headers in the window. One without a whole batch is moved to the decoder's position first, and a batch
 * that is larger than it is looked at in the file. */
static inline int kr_follow_window(kr_follow *f, kr_decoder *d) {
    int64_t end = d->position + d->input.window_bytes, size = d->input.size;
    for (int moved = 0; moved < 2; moved++) {
        if (moved && !kr_need(&d->input, d->position, end < size ? end : size)) return KR_UNREADABLE;
        kr_input seen = d->input;
        seen.move = 0; /* what is not in the window makes it fail, and that is where it ends */
        int status = kr_lookahead_run(f->ahead, &seen, size);
        if (status == KR_NEEDS_ROOM) return status;
        if (f->ahead->position > d->position) return KR_OK;
    }
    return kr_lookahead_run(f->ahead, f->far, d->position + 1);
}

/* After KR_NEEDS_TRANSACTIONS: KR_OK, and the decoder can go on; KR_NEEDS_ROOM, for tables or f->aborted, and it is to
 * be called again; KR_UNREADABLE; KR_END, when a transaction that begins at the decoder's position has no end in the
 * file. */
static inline int kr_follow_run(kr_follow *f, kr_decoder *d) {
    int status = f->ahead->position <= d->position ? kr_follow_window(f, d) : KR_OK;
    if (status == KR_NEEDS_ROOM || status == KR_UNREADABLE) return status;
    int64_t seen = d->input.until < f->ahead->position ? d->input.until : f->ahead->position;
    int64_t known = seen > d->position ? seen : f->ahead->position;
    status = KR_OK;
    while (status != KR_END && kr_first_open(&f->ahead->open) < known) {
        status = kr_lookahead_run(f->ahead, f->far, f->ahead->position + KR_FOLLOW_STEP);
        if (status == KR_NEEDS_ROOM || status == KR_UNREADABLE) return status;
    }
    int64_t open = kr_first_open(&f->ahead->open);
    if (open < known) known = open;
    if (known <= d->position) return KR_END;
    d->known = known;
    return kr_follow_hide(f, d);
}

#endif
