/* One pass over values with frames that decodes those of all types, each into the columns of its type.
 *
 * Rows that follow each other and are of one type are a run: a generated decoder reads their frames as well, so that
 * each value is looked at once. Where it refuses a row, the interpreter reads it into the same columns. The pass stops
 * at a row whose frame is odd, or says a type or version that there is not: what becomes of it is decided elsewhere. */
#ifndef KRAFTLOG_MESSAGE_PASS_H
#define KRAFTLOG_MESSAGE_PASS_H

#include "message/side.h"

enum { KR_PASS_TYPES = 128 }; /* api keys of one byte */

/* The records of a type. */
typedef struct {
    kr_side values;
    int is_skipped;  /* its records are not wanted, only their frames are looked at */
    kr_growing rows; /* int64: of the values */
} kr_pass_type;

/* The type of a value that begins as nearly all do; NULL for any other. */
KR_ALWAYS_INLINE kr_pass_type *kr_pass_type_of(kr_pass_type *types, const uint8_t *p, const uint8_t *end) {
    if (end - p < KR_SHORT_FRAME || p[0] != KR_FRAME_VERSION || (p[1] | p[2]) >= 0x80) return 0;
    kr_pass_type *t = &types[p[1]];
    return t->values.programs && kr_side_has(&t->values, p[2]) ? t : 0;
}

/* Notes rows [from, to), which were decoded; 0 when memory is short. */
static int kr_note_rows(kr_growing *rows, int64_t from, int64_t to) {
    if (!kr_reserve(rows, (int64_t)sizeof from * (to - from))) return 0;
    int64_t *noted = (int64_t *)(void *)(rows->bytes + rows->size);
    for (int64_t row = from; row < to; row++) noted[row - from] = row;
    rows->size += (int64_t)sizeof from * (to - from);
    return 1;
}

/* The first row from `from` on that is wanted, or odd. */
static int64_t kr_pass_skip(kr_pass_type *types, const kr_lent_binary *v, int64_t from, int64_t to) {
    const uint8_t *p = v->data + v->ends[from], *end;
    for (; from < to; from++, p = end) {
        end = v->data + v->ends[from + 1];
        const kr_pass_type *t = kr_pass_type_of(types, p, end);
        if (!t || !t->is_skipped) break;
    }
    return from;
}

/* Decodes values from `from` on. Returns the row at which it stops: `to` behind the last one, else a row of a type that
 * has no decoder yet or is not among these; -1 when memory is short. */
static int64_t kr_pass_run(kr_pass_type *types, const kr_lent_binary *v, int64_t from, int64_t to) {
    const uint8_t *limit = v->data + v->ends[to];
    while (from < to) {
        const uint8_t *p = v->data + v->ends[from];
        kr_pass_type *t = kr_pass_type_of(types, p, v->data + v->ends[from + 1]);
        if (t && t->is_skipped) {
            from = kr_pass_skip(types, v, from, to);
            continue;
        }
        if (!t || !t->values.decoder) return from;
        kr_straight_run run;
        kr_begin_run(&run, p[1], v, 0);
        int is_refused;
        int64_t at = kr_side_run(&t->values, &run, v, from, to, limit, to - from, &is_refused);
        if (is_refused < 0) return -1;
        if (is_refused) {
            p = v->data + v->ends[at];
            if (!kr_side_interpret(&t->values, p, v->data + v->ends[at + 1], KR_SHORT_FRAME, p[2])) return -1;
            at++;
        }
        if (!kr_note_rows(&t->rows, from, at)) return -1;
        from = at;
    }
    return from;
}

#endif
