/* Which transactions begin and end in a log file, from its batch headers: one pass over the headers.
 *
 * A transaction of a producer begins with its first transactional batch and ends with its next marker. Nothing needs to
 * be known of the files before: a marker of a producer without data in front of it is put out as well, since its
 * transaction may have begun there. Positions rise along the file whatever offsets say. Open transactions are kept in a
 * table by producer id: open addressing, linear probing, a power of two of slots, at most three quarters full.
 *
 * A header is believed when the next one follows from it. Else, and of markers always, the crc is compared, and a batch
 * whose crc does not match is passed over as the decoder passes over it.
 */
#ifndef KRAFTLOG_LOOKAHEAD_H
#define KRAFTLOG_LOOKAHEAD_H

#include "scanner.h"

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
    kr_input input;
    int64_t position;
    int64_t base_offset; /* of the batch before; -1 at the start */
    int8_t is_chain;     /* every header so far follows plausibly from the one before */
    int8_t check_all;    /* whether the crc of every batch is compared */
    kr_open_table open;
    kr_ended_transaction *ended;
    int64_t ended_count, ended_capacity;
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
    if (!kr_is_marker_type(h) || kr_batch_crc(&l->input, h) != h->crc) return KR_OK;
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

/* Whether a header is one that a broker writes behind the one before. */
static inline int kr_continues(const kr_lookahead *l, const kr_batch_header *h) {
    if (h->magic > 2 || h->base_offset < 0 || h->base_offset < l->base_offset) return 0;
    if (l->base_offset >= 0 && h->base_offset - l->base_offset > INT32_MAX) return 0;
    return h->magic < 2 ? (h->attributes & ~0x0f) == 0 && kr_compression(h) < KR_LAST_COMPRESSION
                        : (h->attributes & ~0x7f) == 0 && kr_compression(h) <= KR_LAST_COMPRESSION &&
                              h->last_offset_delta >= 0 && h->records_count >= 0;
}

/* Whether a batch is to be taken; if not, `next` is where to go on. */
static inline int kr_is_believed(kr_lookahead *l, const kr_batch_header *h, int64_t *next) {
    int follows = *next >= l->input.size || kr_is_followed(&l->input, h, *next);
    if (!kr_continues(l, h) || !follows) l->is_chain = 0;
    if (follows && !l->check_all) return 1;
    if (kr_batch_crc(&l->input, h) == h->crc) return 1;
    *next = kr_behind_bad_batch(&l->input, h);
    return 0;
}

/* Goes on to the first batch at or behind `stop`. KR_CHUNK_FULL there, KR_END at the end of the input, KR_NEEDS_ROOM,
 * KR_UNREADABLE when the input failed: the batch at the position has not been taken. */
static inline int kr_lookahead_run(kr_lookahead *l, int64_t stop) {
    kr_batch_header h;
    kr_error e;
    int64_t next;
    while (l->position < l->input.size) {
        if (l->position >= stop) return KR_CHUNK_FULL;
        int status = kr_step(&l->input, l->position, &h, &e, &next);
        if (l->input.failed) return KR_UNREADABLE;
        if (status == KR_OK) {
            kr_prefetch_headers(&l->input, &h, next);
            kr_choose_ahead(&l->input, next - l->position);
            int is_believed = kr_is_believed(l, &h, &next);
            if (l->input.failed) return KR_UNREADABLE;
            if (is_believed && (status = kr_look_at(l, &h)) != KR_OK) return status;
            if (l->input.failed) return KR_UNREADABLE;
            if (is_believed) l->base_offset = h.base_offset;
        } else if (status != KR_TORN_TAIL) {
            l->is_chain = 0;
        } else {
            next = l->input.size;
        }
        l->position = next;
    }
    return KR_END;
}

#endif
