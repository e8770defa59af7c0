/* Which transactions begin and end in a log file, from its batch headers: one pass over the headers.
 *
 * A transaction of a producer begins with its first transactional batch and ends with its next marker. Nothing needs to
 * be known of the files before: a marker of a producer without data in front of it is put out as well, since its
 * transaction may have begun there. Positions rise along the file whatever offsets say. Open transactions are kept in a
 * table by producer id: open addressing, linear probing, a power of two of slots, at most three quarters full. It is no
 * base/hash_index.h: transactions lie in the slots themselves, in memory of the caller, who shows them as rows.
 *
 * The crc of markers is compared always.
 */
#ifndef KRAFTLOG_BATCH_LOOKAHEAD_H
#define KRAFTLOG_BATCH_LOOKAHEAD_H

#include "batch/scanner.h"

enum { KR_NO_PRODUCER = -1, KR_COMMIT_MARKER = 1 };

typedef struct {
    int64_t producer_id, first_offset, first_position;
} kr_open_transaction;

typedef struct {
    int64_t producer_id, first_offset, first_position; /* -1: no data in front of the marker */
    int64_t marker_offset, marker_position;
    int64_t state; /* of the marker: 0 aborted, 1 committed */
} kr_ended_transaction;

typedef struct {
    kr_open_transaction *slots; /* KR_NO_PRODUCER: free */
    int64_t capacity, count;
} kr_open_table;

typedef struct {
    int64_t position;
    int8_t check; /* KR_CHECK_CONTROL or KR_CHECK_ALL */
    kr_open_table open;
    kr_ended_transaction *ended;
    int64_t ended_count, ended_capacity;
    int64_t damaged_markers; /* that were passed over */
} kr_lookahead;

static inline int64_t kr_open_slot(const kr_open_table *t, int64_t producer_id) {
    uint64_t mask = (uint64_t)t->capacity - 1, at = ((uint64_t)producer_id * 0x9e3779b97f4a7c15ull) >> 20 & mask;
    while (t->slots[at].producer_id != KR_NO_PRODUCER && t->slots[at].producer_id != producer_id) at = (at + 1) & mask;
    return (int64_t)at;
}

static inline int kr_open_is_full(const kr_open_table *t) { return 4 * (t->count + 1) > 3 * t->capacity; }

/* The table must not be full. */
static inline void kr_open_add(kr_open_table *t, kr_open_transaction added) {
    kr_open_transaction *slot = &t->slots[kr_open_slot(t, added.producer_id)];
    if (slot->producer_id == added.producer_id) return;
    *slot = added;
    t->count++;
}

/* Frees a slot, and moves those behind it up that were probed past it. */
static inline void kr_open_remove(kr_open_table *t, int64_t at) {
    kr_open_transaction moved;
    int64_t mask = t->capacity - 1;
    t->slots[at].producer_id = KR_NO_PRODUCER;
    t->count--;
    for (at = (at + 1) & mask; t->slots[at].producer_id != KR_NO_PRODUCER; at = (at + 1) & mask) {
        moved = t->slots[at];
        t->slots[at].producer_id = KR_NO_PRODUCER;
        t->slots[kr_open_slot(t, moved.producer_id)] = moved;
    }
}

static inline int kr_is_marker_type(const kr_batch_header *h) {
    return h->control_type >= 0 && h->control_type <= KR_COMMIT_MARKER;
}

/* Takes one batch. KR_NEEDS_ROOM when the table or the output is full: nothing has changed then. */
static inline int kr_look_at(kr_lookahead *l, const kr_batch_header *h) {
    if (h->magic < 2 || h->producer_id < 0) return KR_OK;
    if (!kr_is_control(h)) {
        if (!(h->attributes & KR_TRANSACTIONAL_BIT)) return KR_OK;
        if (kr_open_is_full(&l->open)) return KR_NEEDS_ROOM;
        kr_open_transaction opened = {h->producer_id, h->base_offset, h->position};
        kr_open_add(&l->open, opened);
        return KR_OK;
    }
    if (!kr_is_marker_type(h)) return KR_OK;
    if (l->ended_count == l->ended_capacity) return KR_NEEDS_ROOM;
    int64_t at = kr_open_slot(&l->open, h->producer_id);
    const kr_open_transaction *open = &l->open.slots[at];
    int has_data = open->producer_id == h->producer_id;
    kr_ended_transaction ended = {h->producer_id,
                                  has_data ? open->first_offset : -1,
                                  has_data ? open->first_position : -1,
                                  h->base_offset,
                                  h->position,
                                  h->control_type};
    l->ended[l->ended_count++] = ended;
    if (has_data) kr_open_remove(&l->open, at);
    return KR_OK;
}

/* Goes on to the first batch at or behind `stop`. KR_CHUNK_FULL there, KR_END at the end of the input, KR_NEEDS_ROOM,
 * KR_UNREADABLE when the input failed: the batch at the position has not been taken. */
static inline int kr_lookahead_run(kr_lookahead *l, kr_input *in, int64_t stop) {
    kr_batch_header h;
    kr_error e;
    int64_t next;
    while (l->position < in->size) {
        if (l->position >= stop) return KR_CHUNK_FULL;
        int status = kr_batch_next(in, l->position, l->check, &h, &e, &next);
        if (in->failed) return KR_UNREADABLE;
        if (status == KR_OK) {
            kr_prefetch_headers(in, &h, next);
            kr_choose_ahead(in, next - l->position);
            if ((status = kr_look_at(l, &h)) != KR_OK) return status;
        }
        l->damaged_markers += status == KR_BAD_CRC && kr_is_control(&h);
        l->position = next;
    }
    return KR_END;
}

#endif
