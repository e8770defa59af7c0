/* The messages of one type, either the keys of records or their values: how they are decoded, and their columns.
 *
 * A generated decoder reads rows that follow each other while there is room in the columns; where it refuses a row, the
 * interpreter reads it into the same columns. */
#ifndef KRAFTLOG_MESSAGE_SIDE_H
#define KRAFTLOG_MESSAGE_SIDE_H

#include <stddef.h>

#include "message/frame.h"
#include "message/straight.h"

/* Zeros, `programs`, `straight` and its versions at first. */
typedef struct {
    const kr_program *programs;  /* NULL where there is no such type */
    const kr_straight *straight; /* one with a `run` */
    int32_t first, versions;     /* that there are */
    int is_expected;             /* whether there is room for the rows that are expected */
    int64_t expected;            /* rows that the pass before had; 0 when there was none */
    kr_message_decoder *decoder; /* NULL until it is needed */
    int64_t count;
    int64_t room_rows, room_bytes; /* up to which row, and for how many bytes, there is room */
    kr_message_shapes *shapes;     /* NULL until they are needed */
} kr_side;

/* Begins a pass with what the one before has left: its shapes, which no other pass can take then. */
static inline kr_side kr_side_begin(kr_side *kept) {
    kr_side s = *kept;
    s.shapes = __atomic_exchange_n(&kept->shapes, 0, __ATOMIC_ACQ_REL);
    return s;
}

/* Ends a pass, and leaves its shapes and its number of rows to the next one. */
static inline void kr_side_leave(kr_side *kept, kr_side *s) {
    if (s->count) __atomic_store_n(&kept->expected, s->count, __ATOMIC_RELAXED);
    if (s->shapes) kr_shapes_close(__atomic_exchange_n(&kept->shapes, s->shapes, __ATOMIC_ACQ_REL));
    s->shapes = 0;
}

static inline int kr_side_has(const kr_side *s, int32_t version) {
    return (uint32_t)(version - s->first) < (uint32_t)s->versions;
}

/* Gives all columns the same rows, as far as `fill` asks for it; 0 when memory is short. */
static int kr_side_settle(kr_side *s, enum kr_fill fill) {
    kr_message_decoder *d = s->decoder;
    d->program = s->programs[0]; /* all have the same fields */
    kr_settle_struct(d, s->straight->prompt, 0, s->count, fill);
    d->columns[0].item.count = s->count;
    return !d->no_memory;
}

/* Makes room for a block of rows; 0 when memory is short. So that columns are not copied again and again, room is made
 * once for as many rows as the pass before had, or for all that are left, `most`, where a block was full already. */
static int kr_side_make_room(kr_side *s, int64_t most) {
    if (!kr_side_settle(s, KR_CUT)) return 0;
    int64_t expected = s->expected < most ? s->expected : most;
    if (!s->is_expected && (s->count >= KR_STRAIGHT_ROWS || expected >= KR_STRAIGHT_ROWS)) {
        s->is_expected = 1;
        kr_expect_rows(s->decoder, s->count ? most : expected + KR_STRAIGHT_ROWS);
        if (s->decoder->no_memory) return 0;
    }
    s->room_rows = s->count + KR_STRAIGHT_ROWS;
    s->room_bytes = KR_STRAIGHT_BYTES;
    return kr_make_room(s->decoder, 0, KR_STRAIGHT_ROWS, KR_STRAIGHT_BYTES);
}

/* Reads one row, whose message starts so many bytes behind `p`, by the interpreter; 0 when memory is short. Room is
 * made anew behind it. */
static int kr_side_interpret(kr_side *s, const uint8_t *p, const uint8_t *end, int32_t start, int32_t version) {
    kr_message_decoder *d = s->decoder;
    const int32_t ends[] = {0, (int32_t)(end - p)};
    const int64_t first = 0;
    kr_messages one = {{.ends = ends, .data = p}, &first, &start, 1};
    int64_t faults = d->faults.size;
    if (!kr_side_settle(s, KR_FILL)) return 0;
    d->program = s->programs[version - s->first];
    kr_interpret_block(d, &one, 0, 1);
    for (; faults < d->faults.size; faults += (int64_t)sizeof(kr_message_fault))
        memcpy(d->faults.bytes + faults + offsetof(kr_message_fault, row), &s->count, sizeof s->count);
    s->room_rows = ++s->count;
    return !d->no_memory;
}

enum { KR_SIDE_TAIL = 1024 }; /* bytes of a row that is copied because too few follow it */

/* Reads a row that the generated decoder has refused from a copy with enough bytes behind it; whether it did. */
static int kr_side_run_copy(kr_side *s, const kr_straight_run *run) {
    uint8_t copy[KR_SIDE_TAIL + KR_PADDING];
    const int32_t ends[] = {0, run->ends[run->from + 1] - run->ends[run->from]};
    const uint8_t *p = run->data + run->ends[run->from], *end = p + ends[1];
    kr_straight_run one = *run;
    if (ends[1] > KR_SIDE_TAIL || run->limit - end >= KR_PADDING) return 0;
    kr_copy_before_zeros(copy, p, ends[1], KR_PADDING);
    one.data = copy;
    one.ends = ends;
    one.limit = copy + ends[1] + KR_PADDING;
    one.most = copy + ends[1];
    one.from = 0;
    one.to = 1;
    one.valid = 0;
    one.is_tombstone += run->is_tombstone ? run->from - run->first_row : 0;
    s->straight->run(s->decoder, &one);
    s->count = one.at;
    return one.from == one.to;
}

/* Puts rows that are absent, of which every field has its default; 0 when memory is short. Room is made anew behind
 * them. */
static int kr_side_put_absent(kr_side *s, int64_t n) {
    kr_message_decoder *d = s->decoder;
    const kr_field *root = s->programs[0].fields;
    if (!kr_side_settle(s, KR_FILL)) return 0;
    for (int32_t k = 0; k < root->count && !d->no_memory; k++) kr_put_default(d, root->first + k, n);
    kr_put_no_unknown(d, 0, n);
    s->count += n;
    s->room_rows = s->count;
    return !d->no_memory;
}

/* Begins a run; kr_side_run says the rest of it. All of it is not set to zero first: most runs are of few rows. */
KR_ALWAYS_INLINE void kr_begin_run(kr_straight_run *run, int32_t number, const kr_lent_binary *v,
                                   uint8_t *is_tombstone) {
    run->number = number;
    run->valid = is_tombstone ? v->validity : 0;
    run->valid_at = v->validity_at;
    run->is_tombstone = is_tombstone;
}

/* Decodes rows [from, to) with the generated decoder, as far as there is room: at least one row fits. `limit` is where
 * the bytes of all rows end. Returns the row at which it stops, and whether the interpreter must read that one. */
static int64_t kr_side_run(kr_side *s, kr_straight_run *run, const kr_lent_binary *v, int64_t from, int64_t to,
                           const uint8_t *limit, int64_t most, int *is_refused) {
    const uint8_t *p = v->data + v->ends[from];
    int64_t size = v->ends[from + 1] - v->ends[from];
    *is_refused = -1;
    if (s->straight->has_shapes && !s->shapes && !(s->shapes = kr_shapes_open())) return from;
    if ((s->count == s->room_rows || size > s->room_bytes) && !kr_side_make_room(s, most)) return from;
    *is_refused = 1;
    if (size > s->room_bytes) return from;
    s->decoder->limit = limit;
    run->data = v->data;
    run->ends = v->ends;
    run->limit = limit;
    run->most = limit - p < s->room_bytes ? limit : p + s->room_bytes;
    run->from = from;
    run->to = to - from < s->room_rows - s->count ? to : from + s->room_rows - s->count;
    run->at = s->count;
    run->first = s->first;
    run->versions = s->versions;
    run->programs = s->programs;
    run->prompt = s->straight->prompt;
    run->shapes = s->shapes;
    run->first_row = from;
    s->straight->run(s->decoder, run);
    s->count = run->at;
    if (run->is_refused && kr_side_run_copy(s, run)) {
        run->from++;
        run->is_refused = 0;
    }
    s->room_bytes -= v->data + v->ends[run->from] - p;
    *is_refused = run->is_refused;
    return run->from;
}

/* Gives all columns that are used the same rows; 0 when memory is short. */
static int kr_side_end(kr_side *s) { return kr_side_settle(s, KR_FILL_USED); }

static inline void kr_side_close(kr_side *s) {
    kr_shapes_close(s->shapes);
    s->shapes = 0;
}

#endif
