/* Buffers that grow, in blocks of the pool. */
#ifndef KRAFTLOG_BASE_GROWING_H
#define KRAFTLOG_BASE_GROWING_H

#include <string.h>

#include "base/block_pool.h"
#include "base/varint.h"

typedef struct {
    uint8_t *bytes;
    int64_t size, capacity; /* the capacity is one that kr_take_pooled gives; 0 when the bytes are owned by others */
} kr_growing;

enum { KR_GROWING_SLACK = 64, KR_SMALLEST_GROWN = 1 << KR_POOL_FIRST, KR_KIND_GROWN = -1 };

static int kr_grow(kr_growing *b, int64_t more) {
    int64_t capacity = b->capacity ? b->capacity : KR_SMALLEST_GROWN;
    while (capacity < b->size + more + KR_GROWING_SLACK) capacity *= 2;
    uint8_t *bytes = capacity > KR_POOL_MOST ? 0 : kr_take_pooled(&capacity, KR_KIND_GROWN);
    if (!bytes) return 0;
    if (b->size) memcpy(bytes, b->bytes, (size_t)b->size);
    if (b->capacity >= KR_POOL_LARGE)
        free(b->bytes); /* what has outgrown it will not fit it again: kept, it would cost as much as what is grown */
    else if (b->capacity)
        kr_give_pooled(b->bytes, b->capacity, KR_KIND_GROWN);
    b->bytes = bytes;
    b->capacity = capacity;
    return 1;
}

static inline void kr_growing_free(kr_growing *b) {
    if (b->capacity) kr_give_pooled(b->bytes, b->capacity, KR_KIND_GROWN);
    memset(b, 0, sizeof *b);
}

/* Room for this many bytes more; 0 when there is no memory, or the buffer would be too large. */
KR_ALWAYS_INLINE int kr_reserve(kr_growing *b, int64_t more) {
    return KR_LIKELY(b->capacity - b->size >= more + KR_GROWING_SLACK) ? 1 : kr_grow(b, more);
}

#endif
