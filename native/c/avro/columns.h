/* Columns that Avro values are decoded into: as Arrow has them, but that bits of booleans are bytes. */
#ifndef KRAFTLOG_AVRO_COLUMNS_H
#define KRAFTLOG_AVRO_COLUMNS_H

#include "base/growing.h"

typedef enum { KR_AVRO_NUMBERS, KR_AVRO_BYTES, KR_AVRO_STRUCT, KR_AVRO_LIST } kr_avro_kind;

/* Children are columns [first, first + count). `values` are numbers of `width` bytes, or of bytes and lists int32 ends,
 * of which there is one more than rows. */
typedef struct {
    kr_avro_kind kind;
    int width, first, count;
    int64_t length;
    int has_nulls; /* until then there is no validity */
    kr_growing validity, values, data;
} kr_avro_column;

typedef struct {
    kr_avro_column *columns;
    int count;
    int64_t made, limit; /* bytes that were reserved, and the most there may be */
} kr_avro_table;

/* Room for `more` bytes; 0 when there is no memory, or it would be more than the limit. */
KR_ALWAYS_INLINE int kr_avro_reserve(kr_avro_table *t, kr_growing *b, int64_t more) {
    if (KR_LIKELY(b->capacity - b->size >= more + KR_GROWING_SLACK)) return 1;
    if (more > t->limit - t->made) return 0;
    int64_t before = b->capacity;
    if (!kr_grow(b, more)) return 0;
    t->made += b->capacity - before;
    return 1;
}

static inline int32_t kr_avro_end(const kr_avro_column *c, int64_t row) {
    int32_t end;
    memcpy(&end, c->values.bytes + 4 * row, sizeof end);
    return end;
}

KR_ALWAYS_INLINE void kr_avro_put_end(kr_avro_column *c, int64_t end) {
    int32_t value = (int32_t)end;
    memcpy(c->values.bytes + c->values.size, &value, sizeof value);
    c->values.size += 4;
}

static int kr_avro_mark(kr_avro_table *t, kr_avro_column *c, int is_valid) {
    int64_t needed = c->length / 8 + 1;
    if (needed > c->validity.size) {
        if (!kr_avro_reserve(t, &c->validity, needed - c->validity.size)) return 0;
        memset(c->validity.bytes + c->validity.size, c->has_nulls ? 0 : 0xff, (size_t)(needed - c->validity.size));
        c->validity.size = needed;
    }
    uint8_t bit = (uint8_t)(1 << (c->length & 7)), *byte = &c->validity.bytes[c->length / 8];
    *byte = (uint8_t)(is_valid ? *byte | bit : *byte & ~bit);
    c->has_nulls = 1;
    return 1;
}

/* Ends a value whose bytes are there. */
KR_ALWAYS_INLINE int kr_avro_ended(kr_avro_table *t, kr_avro_column *c) {
    if (KR_UNLIKELY(c->has_nulls) && !kr_avro_mark(t, c, 1)) return 0;
    c->length++;
    return 1;
}

static int kr_avro_append_null(kr_avro_table *t, kr_avro_column *c) {
    if (!kr_avro_mark(t, c, 0)) return 0;
    switch (c->kind) {
    case KR_AVRO_NUMBERS:
        if (!kr_avro_reserve(t, &c->values, c->width)) return 0;
        memset(c->values.bytes + c->values.size, 0, (size_t)c->width);
        c->values.size += c->width;
        break;
    case KR_AVRO_BYTES:
    case KR_AVRO_LIST:
        if (!kr_avro_reserve(t, &c->values, 4)) return 0;
        kr_avro_put_end(c, kr_avro_end(c, c->length));
        break;
    case KR_AVRO_STRUCT:
        for (int i = 0; i < c->count; i++)
            if (!kr_avro_append_null(t, &t->columns[c->first + i])) return 0;
        break;
    }
    c->length++;
    return 1;
}

/* Drops what stands behind a number of rows. */
static void kr_avro_truncate(kr_avro_table *t, kr_avro_column *c, int64_t rows) {
    c->length = rows;
    if (c->validity.size > rows / 8 + 1) c->validity.size = rows / 8 + 1;
    switch (c->kind) {
    case KR_AVRO_NUMBERS:
        c->values.size = rows * c->width;
        break;
    case KR_AVRO_BYTES:
        c->values.size = 4 * (rows + 1);
        c->data.size = kr_avro_end(c, rows);
        break;
    case KR_AVRO_LIST:
        c->values.size = 4 * (rows + 1);
        kr_avro_truncate(t, &t->columns[c->first], kr_avro_end(c, rows));
        break;
    case KR_AVRO_STRUCT:
        for (int i = 0; i < c->count; i++) kr_avro_truncate(t, &t->columns[c->first + i], rows);
        break;
    }
}

/* Makes the columns ready; 0 when memory is short. */
static inline int kr_avro_open(kr_avro_table *t) {
    for (int i = 0; i < t->count; i++) {
        kr_avro_column *c = &t->columns[i];
        if (!kr_avro_reserve(t, &c->values, 4) || !kr_avro_reserve(t, &c->data, 0)) return 0;
        if (c->kind == KR_AVRO_BYTES || c->kind == KR_AVRO_LIST) kr_avro_put_end(c, 0);
    }
    return 1;
}

static inline void kr_avro_close(kr_avro_table *t) {
    for (int i = 0; i < t->count; i++) {
        kr_growing_free(&t->columns[i].validity);
        kr_growing_free(&t->columns[i].values);
        kr_growing_free(&t->columns[i].data);
    }
}

#endif
