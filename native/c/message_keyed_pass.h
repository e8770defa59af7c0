/* One pass over records with keys that decodes those of all types: for each type the columns of its keys, and those of
 * its values.
 *
 * Keys and values begin with an int16, of the type and of the version. Rows that follow each other and are of one type
 * are taken in blocks that stay in the cache: first the keys of a block, then its values. The pass stops at a row that
 * is odd, and where a message has a fault: what becomes of these is decided elsewhere. */
#ifndef KRAFTLOG_MESSAGE_KEYED_PASS_H
#define KRAFTLOG_MESSAGE_KEYED_PASS_H

#include "message_frame.h"
#include "message_straight.h"

enum { KR_KEYED_TYPES = 64, KR_KEYED_ROWS = 512, KR_KEYED_PREFIX = 2, KR_KEYED_FAULT = -2, KR_KEYED_NO_MEMORY = -1 };

/* One side of the records of a type; zeros, `programs` and `straight` at first. */
typedef struct {
    const kr_program *programs;
    const kr_straight *straight;
    int32_t first, versions;
    kr_message_decoder *decoder; /* NULL until it is needed */
} kr_keyed_side;

typedef struct {
    kr_keyed_side key, value; /* of keys there is one version, whatever their types say */
    kr_growing rows;          /* int64: of the records */
    kr_growing tombstones;    /* a byte for each of them: whether it has no value */
    int is_expected;          /* whether there is room for the rest, as if all of it were of this type */
} kr_keyed_type;

/* Rows of a block: of all their keys, and of the values that are there. */
typedef struct {
    int64_t n, values;
    int64_t value_rows[KR_KEYED_ROWS];
    int32_t versions[KR_KEYED_ROWS];
    uint8_t is_tombstone[KR_KEYED_ROWS];
} kr_keyed_block;

/* The type of a key that begins as nearly all do; -1 for any other. */
KR_ALWAYS_INLINE int kr_keyed_type_of(const kr_values *keys, int64_t row) {
    const uint8_t *p = keys->data + keys->ends[row];
    if (keys->ends[row + 1] - keys->ends[row] < KR_KEYED_PREFIX || kr_value_is_null(keys, row)) return -1;
    return p[0] == 0 && p[1] < KR_KEYED_TYPES ? p[1] : -1;
}

/* Takes rows [from, to) into a block, up to one of another type, or one that is odd. */
static inline void kr_keyed_take(kr_keyed_block *b, const kr_keyed_type *t, int type, const kr_values *keys,
                                 const kr_values *values, int64_t from, int64_t to) {
    b->n = b->values = 0;
    if (to - from > KR_KEYED_ROWS) to = from + KR_KEYED_ROWS;
    for (int64_t row = from; row < to && kr_keyed_type_of(keys, row) == type; row++) {
        int is_tombstone = kr_value_is_null(values, row);
        if (!is_tombstone) {
            if (values->ends[row + 1] - values->ends[row] < KR_KEYED_PREFIX) return;
            int32_t version = kr_load_int16(values->data + values->ends[row]);
            if ((uint32_t)(version - t->value.first) >= (uint32_t)t->value.versions) return;
            b->versions[b->n] = version;
            b->value_rows[b->values++] = b->n;
        }
        b->is_tombstone[b->n++] = (uint8_t)is_tombstone;
    }
}

/* Decodes messages of one side; KR_KEYED_NO_MEMORY, KR_KEYED_FAULT or 0. */
static inline int kr_keyed_decode(kr_keyed_side *side, const kr_values *v, int64_t from, const int64_t *rows,
                                  const int32_t *starts, const int32_t *versions, int64_t n) {
    kr_versioned of_rows = {{v->data, v->ends + from, rows, starts, n}, versions};
    if (!n) return 0;
    if (!kr_decode_versions(side->decoder, side->programs, side->first, side->straight, &of_rows))
        return KR_KEYED_NO_MEMORY;
    return side->decoder->faults.size ? KR_KEYED_FAULT : 0;
}

/* Makes room for so many records more, so that columns need not grow on the way. */
static inline void kr_keyed_expect(kr_keyed_type *t, int64_t n) {
    kr_keyed_side *sides[] = {&t->key, &t->value};
    for (int i = 0; i < 2; i++) {
        sides[i]->decoder->program = sides[i]->programs[0];
        kr_expect_rows(sides[i]->decoder, n);
    }
    t->is_expected = 1;
}

/* Decodes records from `from` on. Returns the row at which it stops: `to` behind the last one, else one that is odd or
 * of a type that has no decoders yet; KR_KEYED_NO_MEMORY, or KR_KEYED_FAULT. */
static int64_t kr_keyed_run(kr_keyed_type *const *types, const kr_values *keys, const kr_values *values, int64_t from,
                            int64_t to) {
    int32_t starts[KR_KEYED_ROWS], zeros[KR_KEYED_ROWS] = {0};
    int64_t each[KR_KEYED_ROWS];
    kr_keyed_block block;
    for (int i = 0; i < KR_KEYED_ROWS; i++) {
        starts[i] = KR_KEYED_PREFIX;
        each[i] = i;
    }
    while (from < to) {
        int type = kr_keyed_type_of(keys, from), failed;
        kr_keyed_type *t = type < 0 ? 0 : types[type];
        if (!t || !t->key.decoder) return from;
        kr_keyed_take(&block, t, type, keys, values, from, to);
        if (!block.n) return from;
        if (!kr_reserve(&t->rows, 8 * block.n) || !kr_push_repeated(&t->tombstones, "", 1, block.n))
            return KR_KEYED_NO_MEMORY;
        memcpy(t->tombstones.bytes + t->tombstones.size - block.n, block.is_tombstone, (size_t)block.n);
        for (int64_t i = 0; i < block.n; i++) {
            int64_t row = from + i;
            memcpy(t->rows.bytes + t->rows.size + 8 * i, &row, 8);
        }
        t->rows.size += 8 * block.n;
        if (block.n == KR_KEYED_ROWS && !t->is_expected) kr_keyed_expect(t, to - from);
        t->key.decoder->limit = keys->data + keys->ends[to];
        t->value.decoder->limit = values->data + values->ends[to];
        if ((failed = kr_keyed_decode(&t->key, keys, from, each, starts, zeros, block.n))) return failed;
        failed = kr_keyed_decode(&t->value, values, from, block.value_rows, starts, block.versions, block.values);
        if (failed) return failed;
        from += block.n;
    }
    return from;
}

#endif
