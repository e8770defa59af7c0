/* One pass over records with keys that decodes those of all types: for each type the columns of its keys, and those of
 * its values, in which the fields of tombstones are absent.
 *
 * Keys and values begin with an int16, of the type and of the version. Rows that follow each other and are of one type
 * are taken in blocks that stay in the cache: first the keys of a block, then its values. The pass stops at a row that
 * is odd, and where a message has a fault: what becomes of these is decided elsewhere. */
#ifndef KRAFTLOG_MESSAGE_KEYED_PASS_H
#define KRAFTLOG_MESSAGE_KEYED_PASS_H

#include "message/pass.h"

enum { KR_KEYED_TYPES = 64, KR_KEYED_ROWS = 512, KR_KEYED_FAULT = -2, KR_KEYED_NO_MEMORY = -1 };

typedef struct {
    kr_side key, value;    /* of keys there is one version, whatever their types say */
    kr_growing rows;       /* int64: of the records */
    kr_growing tombstones; /* a byte for each of them: whether it has no value */
    int is_skipped;        /* its records are not wanted, only what they begin with is looked at */
} kr_keyed_type;

/* The type of a key that begins as nearly all do; -1 for any other. */
KR_ALWAYS_INLINE int kr_keyed_type_of(const kr_lent_binary *keys, int64_t row) {
    const uint8_t *p = keys->data + keys->ends[row];
    if (keys->ends[row + 1] - keys->ends[row] < KR_INT16_PREFIX || kr_lent_is_null(keys, row)) return -1;
    return p[0] == 0 && p[1] < KR_KEYED_TYPES ? p[1] : -1;
}

/* Whether a value is null, or begins with a version that there is. */
static inline int kr_keyed_value_is_usual(const kr_side *value, const kr_lent_binary *values, int64_t row) {
    if (kr_lent_is_null(values, row)) return 1;
    return values->ends[row + 1] - values->ends[row] >= KR_INT16_PREFIX &&
           kr_side_has(value, kr_load_int16(values->data + values->ends[row]));
}

/* The first row from `from` on that is of another type, or odd. */
static int64_t kr_keyed_skip(const kr_keyed_type *t, int number, const kr_lent_binary *keys,
                             const kr_lent_binary *values, int64_t from, int64_t to) {
    while (from < to && kr_keyed_type_of(keys, from) == number && kr_keyed_value_is_usual(&t->value, values, from))
        from++;
    return from;
}

/* Reads a row by the interpreter; the row behind it, KR_KEYED_NO_MEMORY or KR_KEYED_FAULT. */
static int64_t kr_keyed_interpret(kr_side *s, const kr_lent_binary *v, int64_t row, int32_t version) {
    const uint8_t *p = v->data + v->ends[row], *end = v->data + v->ends[row + 1];
    if (!kr_side_interpret(s, p, end, KR_INT16_PREFIX, version)) return KR_KEYED_NO_MEMORY;
    return s->decoder->faults.size ? KR_KEYED_FAULT : row + 1;
}

/* Decodes keys of a type from `from` on. Returns the row at which it stops, which is `to` or begins otherwise;
 * KR_KEYED_NO_MEMORY, or KR_KEYED_FAULT. */
static int64_t kr_keyed_keys(kr_side *s, int number, const kr_lent_binary *keys, int64_t from, int64_t to,
                             const uint8_t *limit, int64_t most) {
    int64_t null = from;
    while (keys->validity && null < to && !kr_lent_is_null(keys, null)) null++;
    if (keys->validity) to = null;
    while (from >= 0 && from < to && kr_keyed_type_of(keys, from) == number) {
        kr_straight_run run;
        kr_begin_run(&run, number, keys, 0);
        int is_refused;
        from = kr_side_run(s, &run, keys, from, to, limit, most, &is_refused);
        if (is_refused < 0) return KR_KEYED_NO_MEMORY;
        if (is_refused) from = kr_keyed_interpret(s, keys, from, 0);
    }
    return from;
}

/* The same of values: it stops at one that begins oddly. */
static int64_t kr_keyed_values(kr_side *s, uint8_t *is_tombstone, const kr_lent_binary *values, int64_t from,
                               int64_t to, const uint8_t *limit, int64_t most) {
    const int64_t first = from;
    while (from >= 0 && from < to && kr_keyed_value_is_usual(s, values, from)) {
        int64_t absent = from;
        while (!s->straight->has_shapes && absent < to && kr_lent_is_null(values, absent))
            is_tombstone[absent++ - first] = 1;
        if (absent > from) {
            if (!kr_side_put_absent(s, absent - from)) return KR_KEYED_NO_MEMORY;
            from = absent;
            continue;
        }
        kr_straight_run run;
        kr_begin_run(&run, 0, values, is_tombstone + from - first);
        int is_refused;
        from = kr_side_run(s, &run, values, from, to, limit, most, &is_refused);
        if (is_refused < 0) return KR_KEYED_NO_MEMORY;
        if (!is_refused) continue;
        if (kr_lent_is_null(values, from)) return KR_KEYED_NO_MEMORY; /* nothing else refuses one */
        from = kr_keyed_interpret(s, values, from, kr_load_int16(values->data + values->ends[from]));
    }
    return from;
}

/* Decodes records from `from` on. Returns the row at which it stops: `to` behind the last one, else one whose key is
 * odd or of a type that has no decoders yet; KR_KEYED_NO_MEMORY; KR_KEYED_FAULT where a message has a fault, or a value
 * begins oddly, and what was decoded is of no use. */
static int64_t kr_keyed_run(kr_keyed_type *const *types, const kr_lent_binary *keys, const kr_lent_binary *values,
                            int64_t from, int64_t to) {
    const uint8_t *limits[] = {keys->data + keys->ends[to], values->data + values->ends[to]};
    while (from < to) {
        int number = kr_keyed_type_of(keys, from);
        kr_keyed_type *t = number < 0 ? 0 : types[number];
        if (!t || (!t->key.decoder && !t->is_skipped)) return from;
        if (t->is_skipped) {
            int64_t at = kr_keyed_skip(t, number, keys, values, from, to);
            if (at == from) return from;
            from = at;
            continue;
        }
        int64_t block = to - from < KR_KEYED_ROWS ? to : from + KR_KEYED_ROWS;
        block = kr_keyed_keys(&t->key, number, keys, from, block, limits[0], to - from);
        if (block < 0) return block;
        if (!kr_note_rows(&t->rows, from, block) || !kr_push_repeated(&t->tombstones, "", 1, block - from))
            return KR_KEYED_NO_MEMORY;
        uint8_t *is_tombstone = t->tombstones.bytes + t->tombstones.size - (block - from);
        int64_t at = kr_keyed_values(&t->value, is_tombstone, values, from, block, limits[1], to - from);
        if (at < block) return at < 0 ? at : KR_KEYED_FAULT;
        from = block;
    }
    return from;
}

/* Gives all columns of a type that are used the same rows; 0 when memory is short. */
static int kr_keyed_end(kr_keyed_type *t) { return kr_side_end(&t->key) && kr_side_end(&t->value); }

#endif
