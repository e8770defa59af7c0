/* One pass over values with frames that decodes those of all types, each into the columns of its type.
 *
 * Rows that follow each other and are of one type are a run: a generated decoder reads their frames as well, so that
 * each value is looked at once. Where it refuses a row, the interpreter reads it into the same columns. The pass stops
 * at a row whose frame is odd, or says a type or version that there is not: what becomes of it is decided elsewhere. */
#ifndef KRAFTLOG_MESSAGE_PASS_H
#define KRAFTLOG_MESSAGE_PASS_H

#include <stddef.h>

#include "message_frame.h"
#include "message_straight.h"

enum { KR_PASS_TYPES = 128 }; /* api keys of one byte */

/* The records of a type; zeros and `programs` at first. */
typedef struct {
    const kr_program *programs;  /* NULL where there is no such type */
    const kr_straight *straight; /* one with a `run` */
    int32_t first, versions;
    kr_message_decoder *decoder; /* NULL until it is needed */
    kr_growing rows;             /* int64: of the values */
    int64_t count;
    int64_t room_rows, room_bytes; /* up to which row, and for how many bytes, there is room */
} kr_pass_type;

/* The type of a value that begins as nearly all do; NULL for any other. */
KR_ALWAYS_INLINE kr_pass_type *kr_pass_type_of(kr_pass_type *types, const uint8_t *p, const uint8_t *end) {
    if (end - p < KR_SHORT_FRAME || p[0] != KR_FRAME_VERSION || (p[1] | p[2]) >= 0x80) return 0;
    kr_pass_type *t = &types[p[1]];
    int64_t version = (int64_t)p[2] - t->first;
    return t->programs && version >= 0 && version < t->versions ? t : 0;
}

static int kr_pass_settle(kr_pass_type *t, int fill) {
    kr_message_decoder *d = t->decoder;
    d->program = t->programs[0]; /* all have the same fields */
    kr_settle_struct(d, t->straight->prompt, 0, t->count, fill);
    d->columns[0].item.count = t->count;
    t->rows.size = (int64_t)sizeof(int64_t) * t->count;
    return !d->no_memory;
}

/* Makes room for more rows; 0 when memory is short. */
static int kr_pass_make_room(kr_pass_type *t) {
    if (!kr_pass_settle(t, 0)) return 0;
    t->room_rows = t->count + KR_STRAIGHT_ROWS;
    t->room_bytes = KR_STRAIGHT_BYTES;
    return kr_reserve(&t->rows, (int64_t)sizeof(int64_t) * KR_STRAIGHT_ROWS) &&
           kr_make_room(t->decoder, 0, KR_STRAIGHT_ROWS, KR_STRAIGHT_BYTES);
}

/* Reads one row by the interpreter; 0 when memory is short. Room is made anew behind it. */
static int kr_pass_interpret(kr_pass_type *t, const uint8_t *p, const uint8_t *end, int64_t row) {
    kr_message_decoder *d = t->decoder;
    const int32_t ends[] = {0, (int32_t)(end - p)}, start = KR_SHORT_FRAME;
    const int64_t first = 0;
    kr_messages one = {p, ends, &first, &start, 1};
    int64_t faults = d->faults.size;
    if (!kr_pass_settle(t, 1) || !kr_push_repeated(&t->rows, &row, sizeof row, 1)) return 0;
    d->program = t->programs[p[2] - t->first];
    kr_interpret_block(d, &one, 0, 1);
    for (; faults < d->faults.size; faults += (int64_t)sizeof(kr_message_fault))
        memcpy(d->faults.bytes + faults + offsetof(kr_message_fault, row), &t->count, sizeof t->count);
    t->room_rows = ++t->count;
    return !d->no_memory;
}

static kr_straight_run kr_pass_part(const kr_pass_type *t, const kr_values *v, int64_t from, int64_t to,
                                    const uint8_t *limit) {
    const uint8_t *p = v->data + v->ends[from];
    kr_straight_run run;
    memset(&run, 0, sizeof run);
    run.data = v->data;
    run.ends = v->ends;
    run.rows = (int64_t *)(void *)t->rows.bytes;
    run.limit = limit;
    run.most = limit - p < t->room_bytes ? limit : p + t->room_bytes;
    run.from = from;
    run.to = to - from < t->room_rows - t->count ? to : from + t->room_rows - t->count;
    run.at = t->count;
    run.first = t->first;
    run.versions = t->versions;
    run.api_key = p[1];
    return run;
}

/* Decodes values from `from` on. Returns the row at which it stops: `to` behind the last one, else a row of a type that
 * has no decoder yet or is not among these; -1 when memory is short. */
static int64_t kr_pass_run(kr_pass_type *types, const kr_values *v, int64_t from, int64_t to) {
    const uint8_t *limit = v->data + v->ends[to];
    while (from < to) {
        const uint8_t *p = v->data + v->ends[from], *end = v->data + v->ends[from + 1];
        kr_pass_type *t = kr_pass_type_of(types, p, end);
        if (!t || !t->decoder) return from;
        t->decoder->limit = limit;
        if ((t->count == t->room_rows || end - p > t->room_bytes) && !kr_pass_make_room(t)) return -1;
        if (end - p <= t->room_bytes) {
            kr_straight_run run = kr_pass_part(t, v, from, to, limit);
            t->straight->run(t->decoder, &run);
            t->count = run.at;
            t->room_bytes -= v->data + v->ends[run.from] - p;
            from = run.from;
            if (!run.is_refused) continue;
        }
        if (!kr_pass_interpret(t, v->data + v->ends[from], v->data + v->ends[from + 1], from)) return -1;
        from++;
    }
    return from;
}

/* Gives all columns of a type the same rows; 0 when memory is short. */
static int kr_pass_end(kr_pass_type *t) { return kr_pass_settle(t, 1); }

#endif
