/* The columns that messages are decoded to: buffers in Arrow's layout that grow as rows are appended.
 *
 * What an Arrow buffer needs beside its bytes (alignment, an owner) is left to the caller. A column
 * keeps validity as a byte for each value, from the first null on; Arrow's bits are made from them at the end. */
#ifndef KRAFTLOG_MESSAGE_COLUMNS_H
#define KRAFTLOG_MESSAGE_COLUMNS_H

#include <string.h>

#include "base/growing.h"
#include "base/varint.h"
#include "message/program.h"

/* One level of a column: the values of a field, the lists that hold them, or a struct's own validity. */
typedef struct {
    int64_t count;
    int64_t nulls;
    kr_growing data;  /* values of fixed width, or bytes of text */
    kr_growing ends;  /* int32; where values of varying size, or lists, end */
    kr_growing valid; /* a byte for each value, once there is a null */
} kr_level;

/* What a field is decoded to; `list` is only for arrays. Unknown tagged fields are a list of (tag, data): tags are
 * int64 in `tags`. */
typedef struct {
    kr_level list, item;
    kr_growing tags;
} kr_column;

/* The first of all ends, which columns share until they have a value. */
static const int32_t kr_first_end;

static inline void kr_column_open(kr_column *c) {
    const kr_growing ends = {(uint8_t *)(uintptr_t)&kr_first_end, sizeof kr_first_end, 0};
    memset(c, 0, sizeof *c);
    c->list.ends = c->item.ends = ends;
}

static inline void kr_column_free(kr_column *c) {
    kr_growing *all[] = {&c->list.data, &c->list.ends,  &c->list.valid, &c->item.data,
                         &c->item.ends, &c->item.valid, &c->tags};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kr_growing_free(all[i]);
    memset(c, 0, sizeof *c);
}

/* Makes room for the validity of n values more, and writes that of those before the first null. */
static inline uint8_t *kr_open_valid(kr_level *l, int64_t n) {
    if (!l->valid.size && l->count) {
        if (!kr_reserve(&l->valid, l->count + n)) return 0;
        memset(l->valid.bytes, 1, (size_t)l->count);
        l->valid.size = l->count;
    }
    return kr_reserve(&l->valid, n) ? l->valid.bytes + l->valid.size : 0;
}

/* Notes that n values, all valid or all null, were put behind the others. */
static inline int kr_counted(kr_level *l, int64_t n, int valid) {
    if (!valid || l->nulls) {
        uint8_t *to = kr_open_valid(l, n);
        if (!to) return 0;
        memset(to, valid, (size_t)n);
        l->valid.size += n;
        if (!valid) l->nulls += n;
    }
    l->count += n;
    return 1;
}

/* The same for n values each of which is valid or null. */
static inline int kr_counted_each(kr_level *l, const uint8_t *valid, int64_t n, int64_t nulls) {
    if (!nulls) return kr_counted(l, n, 1);
    uint8_t *to = kr_open_valid(l, n);
    if (!to) return 0;
    memcpy(to, valid, (size_t)n);
    l->valid.size += n;
    l->nulls += nulls;
    l->count += n;
    return 1;
}

static inline void kr_push_end(kr_level *l, int64_t end) {
    int32_t narrow = (int32_t)end;
    memcpy(l->ends.bytes + l->ends.size, &narrow, sizeof narrow);
    l->ends.size += (int64_t)sizeof narrow;
}

/* The same bytes n times. */
static inline int kr_push_repeated(kr_growing *b, const void *value, int64_t width, int64_t n) {
    if (!kr_reserve(b, width * n)) return 0;
    uint8_t *to = b->bytes + b->size;
    if (width == 1) {
        memset(to, *(const uint8_t *)value, (size_t)n);
    } else if (width == 4) {
        for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, value, 4);
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(to + i * width, value, (size_t)width);
    }
    b->size += width * n;
    return 1;
}

#endif
