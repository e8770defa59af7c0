/* Large blocks that nobody owns, to be used again: a fresh one costs as much as decoding into it, since the system sets
 * each of its pages to zero first.
 *
 * What counts is how many bytes were written to, not how many there is room for: columns are laid out for the most that
 * may come. A block is held, or its bytes are offered to the system, which takes them when it is short of memory; until
 * then they can be used again at no cost. When there is too much of both, the oldest blocks are freed. */
#ifndef KRAFTLOG_BASE_IDLE_BLOCKS_H
#define KRAFTLOG_BASE_IDLE_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define KR_IDLE_MOST ((int64_t)384 << 20) /* bytes that were written to, of all blocks */

enum { KR_IDLE_BLOCKS = 256, KR_LARGE_PAGE = 2 << 20, KR_LEAST_PAGE = 4096, KR_PAGES_AT_ONCE = 16384 };

typedef struct {
    uint8_t *bytes;
    int64_t capacity, touched;
    int kind; /* blocks of a kind are written to alike: keys are short, and values long */
    int is_offered;
} kr_idle_block;

typedef struct {
    int count;
    int64_t held, offered;
    kr_idle_block block[KR_IDLE_BLOCKS]; /* the oldest first */
} kr_idle_blocks;

/* Blocks that are to be freed, outside of the pool. */
typedef struct {
    int count;
    uint8_t *block[KR_IDLE_BLOCKS];
} kr_freed_blocks;

/* A new block, on large pages where the system has them. */
static inline uint8_t *kr_fresh_large_block(int64_t capacity) {
    void *fresh = 0;
    if (posix_memalign(&fresh, KR_LARGE_PAGE, (size_t)capacity) != 0) return 0;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    (void)madvise(fresh, (size_t)capacity, MADV_HUGEPAGE); /* only advice */
#endif
    return (uint8_t *)fresh;
}

/* Bytes of the pages that are in memory; all of them where the system does not say. */
static inline int64_t kr_touched_bytes(uint8_t *block, int64_t capacity) {
#if defined(__linux__)
    unsigned char is_there[KR_PAGES_AT_ONCE];
    int64_t pages = 0, most = (int64_t)KR_PAGES_AT_ONCE * KR_LEAST_PAGE;
    for (int64_t at = 0; at < capacity; at += most) {
        int64_t size = capacity - at < most ? capacity - at : most, count = (size + KR_LEAST_PAGE - 1) / KR_LEAST_PAGE;
        memset(is_there, 0, (size_t)count); /* where pages are larger there are fewer of them */
        if (mincore(block + at, (size_t)size, is_there) != 0) return capacity;
        for (int64_t i = 0; i < count; i++) pages += is_there[i] & 1;
    }
    return pages * KR_LEAST_PAGE;
#else
    (void)block;
    return capacity;
#endif
}

/* Lets the system take these bytes, which are of no use any more, when it is short of memory; 0 where it cannot. */
static inline int kr_offer_bytes(uint8_t *block, int64_t capacity) {
#if defined(__linux__) && defined(MADV_FREE)
    return madvise(block, (size_t)capacity, MADV_FREE) == 0;
#else
    (void)block, (void)capacity;
    return 0;
#endif
}

static inline void kr_idle_remove(kr_idle_blocks *p, int i) {
    kr_idle_block *b = &p->block[i];
    *(b->is_offered ? &p->offered : &p->held) -= b->touched;
    p->count--;
    memmove(b, b + 1, (size_t)(p->count - i) * sizeof *b);
}

/* The smallest block of this kind that has at least *capacity bytes and not more than half as many again, of several
 * the one that was given last; or NULL. *capacity becomes what it has. */
static inline uint8_t *kr_idle_take(kr_idle_blocks *p, int64_t *capacity, int kind) {
    const kr_idle_block *found = 0;
    for (const kr_idle_block *b = p->block + p->count; b-- > p->block;)
        if (b->kind == kind && b->capacity >= *capacity && b->capacity <= *capacity + *capacity / 2 &&
            (!found || b->capacity < found->capacity))
            found = b;
    if (!found) return 0;
    uint8_t *bytes = found->bytes;
    *capacity = found->capacity;
    kr_idle_remove(p, (int)(found - p->block));
    return bytes;
}

/* Offers the oldest blocks, until no more than so many bytes are held; 0 where that cannot be. */
static inline int kr_idle_hold(kr_idle_blocks *p, int64_t most) {
    for (int i = 0; i < p->count && p->held > most; i++) {
        kr_idle_block *b = &p->block[i];
        if (b->is_offered || !kr_offer_bytes(b->bytes, b->capacity)) continue;
        b->is_offered = 1;
        p->held -= b->touched;
        p->offered += b->touched;
    }
    return p->held <= most;
}

/* Keeps a block. What is to be freed for it, or the block itself, is added to `freed`. */
static inline void kr_idle_give(kr_idle_blocks *p, kr_idle_block given, kr_freed_blocks *freed) {
    if (given.touched > KR_IDLE_MOST) {
        freed->block[freed->count++] = given.bytes;
        return;
    }
    while (p->count == KR_IDLE_BLOCKS || p->held + p->offered + given.touched > KR_IDLE_MOST) {
        freed->block[freed->count++] = p->block[0].bytes;
        kr_idle_remove(p, 0);
    }
    *(given.is_offered ? &p->offered : &p->held) += given.touched;
    p->block[p->count++] = given;
}

#endif
