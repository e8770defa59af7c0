/* Files whose transactions are found on the way (record/follow.h), through windows of any size: the decoder shows what
 * is committed, and stops where a transaction begins that does not end. */
#ifndef KRAFTLOG_TESTS_FUZZ_FOLLOW_H
#define KRAFTLOG_TESTS_FUZZ_FOLLOW_H

#include "fuzz_decode.h"
#include "input/file_window.h"
#include "record/follow.h"

enum {
    FOLLOW_BATCHES = 60,
    FOLLOW_PRODUCERS = 5,
    FOLLOW_TRANSACTIONAL = 0x10,
    FOLLOW_CONTROL = 0x20,
    FOLLOW_NO_MARKER = -1
};

/* One batch of a file: `marker` ends the transaction of its producer, 0 aborts it. */
typedef struct {
    int64_t position, offset, producer_id;
    int32_t records;
    int is_transactional, marker;
} followed_batch;

typedef struct {
    bytes file;
    followed_batch batches[FOLLOW_BATCHES];
    int64_t count;
} followed_file;

/* A window over bytes in memory, in a block of just the size that it asks for. */
typedef struct {
    kr_window window;
    kr_input input;
    const uint8_t *bytes;
    int64_t most_capacity, spare;
} followed_window;

static uint8_t *followed_grow(kr_window *w, int64_t capacity, const uint8_t *kept, int64_t size) {
    followed_window *of = (followed_window *)w->owner;
    uint8_t *block = malloc((size_t)(capacity + of->spare));
    if (!block) abort();
    if (size) memcpy(block, kept, (size_t)size);
    if (of->spare) memset(block + capacity, 0xff, (size_t)of->spare);
    free(w->block);
    w->block = block;
    w->capacity = capacity;
    if (capacity > of->most_capacity) of->most_capacity = capacity;
    return block;
}

static int64_t followed_fill(kr_window *w, uint8_t *target, int64_t start, int64_t size) {
    memcpy(target, ((followed_window *)w->owner)->bytes + start, (size_t)size);
    return size;
}

/* No `window_bytes`: all is in memory. */
static void followed_open(followed_window *w, const uint8_t *p, int64_t size, int64_t window_bytes) {
    memset(w, 0, sizeof *w);
    w->input = kr_input_make(p, size);
    if (!window_bytes) return;
    w->bytes = p;
    w->spare = random_below(2) ? KR_WINDOW_SPARE : 0;
    w->window.file = -1;
    w->window.grow = followed_grow;
    w->window.fill = followed_fill;
    w->window.owner = w;
    w->input.start = 0;
    w->input.until = 0;
    w->input.spare = w->spare;
    w->input.move = kr_window_move;
    w->input.owner = &w->window;
    w->input.ahead = w->input.window_bytes = window_bytes;
    w->input.long_batch = 1 + random_below(2 * window_bytes);
    w->input.stop = size;
}

static void make_followed_file(followed_file *f) {
    static bytes records, fields;
    int64_t offset = random_below(100), producers = 1 + random_below(FOLLOW_PRODUCERS), open = 0;
    f->file.size = f->count = 0;
    for (int64_t n = random_below(FOLLOW_BATCHES); n > 0; n--) {
        followed_batch *b = &f->batches[f->count++];
        b->producer_id = random_below(producers);
        b->is_transactional = random_below(3) != 0;
        b->marker = b->is_transactional && random_below(3) == 0 ? (int)random_below(2) : FOLLOW_NO_MARKER;
        if (n <= producers && (open >> b->producer_id & 1)) { /* most files end with nothing open */
            b->is_transactional = 1;
            b->marker = (int)random_below(2);
        }
        open &= ~((int64_t)(b->marker != FOLLOW_NO_MARKER) << b->producer_id);
        open |= (int64_t)(b->is_transactional && b->marker == FOLLOW_NO_MARKER) << b->producer_id;
        b->records = b->marker == FOLLOW_NO_MARKER ? 1 + (int32_t)random_below(3) : 1;
        b->offset = offset;
        offset += b->records + random_below(2);
        records.size = 0;
        if (b->marker == FOLLOW_NO_MARKER) {
            for (int32_t i = 0; i < b->records; i++)
                put_record(&records, i, i, "key", random_below(8) ? "v" : "a longer value, so that sizes differ", 0);
        } else {
            fields.size = 0;
            put_hex(&fields, "00 00 00 08");
            put_int(&fields, b->marker, 4);
            put_varint(&fields, 6);
            put_int(&fields, 0, 6);
            put_fill(&fields, 0, 1);
            put_record_of(&records, &fields);
        }
        int attributes =
            (b->is_transactional ? FOLLOW_TRANSACTIONAL : 0) | (b->marker != FOLLOW_NO_MARKER ? FOLLOW_CONTROL : 0);
        b->position = put_batch(&f->file, b->offset, attributes, 1000, b->records, &records);
        set_big_endian(f->file.at + b->position + KR_PRODUCER_ID_AT, b->producer_id, 8);
        seal(&f->file, b->position);
    }
}

/* What becomes of the transaction that batch i is part of: the marker behind it, or none. */
static int followed_end(const followed_file *f, int64_t i) {
    for (int64_t k = i + 1; k < f->count; k++)
        if (f->batches[k].producer_id == f->batches[i].producer_id && f->batches[k].marker != FOLLOW_NO_MARKER)
            return f->batches[k].marker;
    return FOLLOW_NO_MARKER;
}

typedef struct {
    int64_t rows, position, faults, most_capacity;
    uint64_t offsets_hash, faults_hash;
    int is_undecided;
} followed_outcome;

/* What a reader is to see, worked out from the list of batches. */
static void expect_followed(const followed_file *f, followed_outcome *o) {
    memset(o, 0, sizeof *o);
    o->position = f->file.size;
    for (int64_t i = 0; i < f->count; i++) {
        const followed_batch *b = &f->batches[i];
        if (b->marker != FOLLOW_NO_MARKER) continue;
        int end = b->is_transactional ? followed_end(f, i) : KR_COMMIT_MARKER;
        if (end == FOLLOW_NO_MARKER) {
            o->is_undecided = 1;
            o->position = b->position;
            return;
        }
        for (int32_t k = 0; end == KR_COMMIT_MARKER && k < b->records; k++, o->rows++)
            o->offsets_hash = hash_int(o->offsets_hash, b->offset + k);
    }
}

/* The tables of a lookahead, which begin small and grow. */
typedef struct {
    kr_lookahead ahead;
    kr_follow follow;
} followed_tables;

static void followed_more_open(kr_lookahead *l, int64_t capacity) {
    kr_open_table made = {room_block(capacity * (int64_t)sizeof *made.slots), capacity, 0};
    for (int64_t i = 0; i < capacity; i++) made.slots[i].producer_id = KR_NO_PRODUCER;
    for (int64_t i = 0; i < l->open.capacity; i++)
        if (l->open.slots[i].producer_id != KR_NO_PRODUCER) kr_open_add(&made, l->open.slots[i]);
    free(l->open.slots);
    l->open = made;
}

static void followed_more_room(followed_tables *t) {
    kr_lookahead *l = &t->ahead;
    if (l->ended_count > t->follow.aborted_capacity) {
        t->follow.aborted_capacity = 2 * l->ended_count;
        free(t->follow.aborted);
        t->follow.aborted = room_block(t->follow.aborted_capacity * (int64_t)sizeof *t->follow.aborted);
    }
    if (l->ended_count == l->ended_capacity) {
        l->ended_capacity = 2 * l->ended_capacity + 1;
        l->ended = realloc(l->ended, (size_t)l->ended_capacity * sizeof *l->ended);
        if (!l->ended) abort();
    }
    if (kr_open_is_full(&l->open)) followed_more_open(l, 2 * l->open.capacity);
}

static void run_followed(const uint8_t *p, int64_t size, int64_t window_bytes, followed_outcome *o) {
    followed_window near, far;
    followed_tables t;
    static outcome faults;
    followed_open(&near, p, size, window_bytes);
    followed_open(&far, p, size, window_bytes);
    memset(&t, 0, sizeof t);
    memset(o, 0, sizeof *o);
    memset(&faults, 0, offsetof(outcome, stretches));
    t.ahead.check = KR_CHECK_CONTROL;
    followed_more_open(&t.ahead, 2);
    t.follow.ahead = &t.ahead;
    t.follow.far = &far.input;
    pass s = whole_pass(p, size, 0);
    kr_decoder d = s.d;
    d.input = near.input;
    d.include_control = 0;
    d.follows = 1;
    d.columns = room_make(s.rows, s.bytes, s.headers, d.want);
    for (int status = KR_OK; status != KR_END && !failures;) {
        status = kr_decoder_run(&d);
        take_faults(&faults, &d);
        if (status == KR_NEEDS_DECOMPRESSION) {
            kr_decompression_failed(&d, KR_DECOMPRESSION_FAILED, 0);
        } else if (status == KR_NEEDS_TRANSACTIONS) {
            while ((status = kr_follow_run(&t.follow, &d)) == KR_NEEDS_ROOM) followed_more_room(&t);
            o->is_undecided = status == KR_END;
            CHECK_TRUE(status == KR_OK || status == KR_END);
        } else {
            CHECK_TRUE(status == KR_END || (status == KR_CHUNK_FULL && faults.faults));
        }
    }
    take_faults(&faults, &d);
    room_check(&d.columns, d.want);
    o->rows = d.columns.rows;
    o->position = d.position;
    for (int64_t i = 0; i < o->rows; i++) o->offsets_hash = hash_int(o->offsets_hash, d.columns.offset[i]);
    o->faults = faults.faults;
    o->faults_hash = faults.faults_hash;
    o->most_capacity = near.most_capacity;
    room_free(&d.columns);
    free(t.ahead.open.slots);
    free(t.ahead.ended);
    free(t.follow.aborted);
    free(near.window.block);
    free(far.window.block);
}

static void check_followed(const followed_outcome *expected, const followed_outcome *found) {
    CHECK_INT(expected->is_undecided, found->is_undecided);
    CHECK_INT(expected->position, found->position);
    CHECK_INT(expected->rows, found->rows);
    CHECK_INT(expected->offsets_hash, found->offsets_hash);
    CHECK_INT(expected->faults, found->faults);
    CHECK_INT(expected->faults_hash, found->faults_hash);
}

static void fuzz_follow(const corpus *c) {
    static followed_file f;
    static fuzz_input damaged;
    followed_outcome expected, whole, windowed;
    int64_t window_bytes = random_below(8) ? 100 + random_below(800) : 1 + random_below(5000);
    make_followed_file(&f);
    int is_damaged = random_below(4) == 0;
    damaged.size = 0;
    replace(&damaged, 0, 0, f.file.at, f.file.size);
    if (is_damaged) mutate(&damaged, c);
    uint8_t *p = exact_copy(damaged.at, damaged.size);
    run_followed(p, damaged.size, 0, &whole);
    run_followed(p, damaged.size, window_bytes, &windowed);
    check_followed(&whole, &windowed);
    if (!is_damaged) {
        expect_followed(&f, &expected);
        check_followed(&expected, &windowed);
        CHECK_TRUE(windowed.most_capacity <= 2 * KR_FOLLOW_WINDOWS * (window_bytes + 400));
    }
    exact_free(p, damaged.size);
}

#endif
