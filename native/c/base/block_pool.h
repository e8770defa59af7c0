/* Blocks of memory that are used again: a fresh one costs a page fault for every 4 KiB that is written to it, which is
 * as much as decoding into it. A doubling of capacity has four steps. A process that is done holds at most KR_POOL_KEPT
 * bytes: small blocks by capacity, and large ones, which base/idle_blocks.h keeps, as far as they were written to.
 * Under a sanitizer every block is fresh, so that its use after it was given back is found.
 *
 * A kr_block has owners, which may be in any thread; the last one gives it back. Each extension module compiles this
 * header; kr_pool_use lets all of them share the pool of one. */
#ifndef KRAFTLOG_BASE_BLOCK_POOL_H
#define KRAFTLOG_BASE_BLOCK_POOL_H

#include <stdatomic.h>

#include "base/idle_blocks.h"

#define KR_POOL_FIRST 9                    /* blocks of 512 bytes */
#define KR_POOL_LARGE ((int64_t)8 << 20)   /* from here on a block is large: more than what a stream decodes into */
#define KR_POOL_LAST  29                   /* and up to 512 MiB are kept */
#define KR_POOL_STEPS 4                    /* of capacities between two powers of two */
#define KR_POOL_KEPT  ((int64_t)128 << 20) /* bytes that are held */
#define KR_POOL_MOST  (((int64_t)1 << 31)) /* what an Arrow offset can reach */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KR_POOL_KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KR_POOL_KEEPS 0
#endif
#endif
#ifndef KR_POOL_KEEPS
#define KR_POOL_KEEPS 1
#endif

enum { KR_POOL_ALIGNMENT = 64, KR_POOL_SLOTS = KR_POOL_STEPS * 23 };

typedef struct {
    atomic_flag busy;
    int64_t kept;                  /* bytes of small blocks */
    uint8_t *first[KR_POOL_SLOTS]; /* by capacity; a small block begins with the address of the next one */
    kr_idle_blocks large;
} kr_block_pool;

static kr_block_pool kr_own_pool = {ATOMIC_FLAG_INIT, 0, {0}, {0, 0, 0, {{0, 0, 0, 0, 0}}}};
static kr_block_pool *kr_pool = &kr_own_pool;

static inline void kr_pool_use(kr_block_pool *pool) { kr_pool = pool; }

static inline int kr_pool_logarithm(int64_t capacity) { return 63 - __builtin_clzll((uint64_t)capacity); }

/* The least capacity of the pool that holds `size` bytes; beyond the largest, whole large pages. */
static inline int64_t kr_pool_capacity(int64_t size) {
    if (size <= 1 << KR_POOL_FIRST) return 1 << KR_POOL_FIRST;
    int64_t step = ((int64_t)1 << kr_pool_logarithm(size - 1)) / KR_POOL_STEPS;
    if (size > (int64_t)1 << KR_POOL_LAST) step = KR_LARGE_PAGE;
    return (size + step - 1) / step * step;
}

static inline int kr_pool_slot(int64_t capacity) {
    int logarithm = kr_pool_logarithm(capacity);
    return KR_POOL_STEPS * logarithm + (int)((capacity >> (logarithm - 2)) & (KR_POOL_STEPS - 1));
}
static inline int kr_pool_keeps(int64_t capacity) { return KR_POOL_KEEPS && capacity <= (int64_t)1 << KR_POOL_LAST; }

/* No thread waits: while the pool is busy others allocate without it, and a process forked meanwhile does not hang. */
static inline int kr_pool_enter(void) {
    return !atomic_flag_test_and_set_explicit(&kr_pool->busy, memory_order_acquire);
}
static inline void kr_pool_leave(void) { atomic_flag_clear_explicit(&kr_pool->busy, memory_order_release); }

static inline uint8_t *kr_fresh_block(int64_t capacity) {
    void *fresh = 0;
    if (capacity >= KR_POOL_LARGE) return kr_fresh_large_block(capacity);
    return posix_memalign(&fresh, KR_POOL_ALIGNMENT, (size_t)capacity) == 0 ? (uint8_t *)fresh : 0;
}

/* A block of *capacity, which is one that kr_pool_capacity gives; a large block may have more, and *capacity becomes
 * that. NULL when memory is short. */
static uint8_t *kr_take_pooled(int64_t *capacity, int kind) {
    uint8_t *block = 0;
    if (kr_pool_keeps(*capacity) && kr_pool_enter()) {
        if (*capacity >= KR_POOL_LARGE) {
            block = kr_idle_take(&kr_pool->large, capacity, kind);
        } else {
            uint8_t **first = &kr_pool->first[kr_pool_slot(*capacity)];
            block = *first;
            if (block) {
                memcpy(first, block, sizeof block);
                kr_pool->kept -= *capacity;
            }
        }
        kr_pool_leave();
    }
    return block ? block : kr_fresh_block(*capacity);
}

static void kr_give_small(uint8_t *block, int64_t capacity) {
    int is_kept = 0;
    if (kr_pool_enter()) {
        uint8_t **first = &kr_pool->first[kr_pool_slot(capacity)];
        int64_t room = KR_POOL_KEPT - kr_pool->kept - capacity;
        is_kept = room >= 0 && kr_idle_hold(&kr_pool->large, room);
        if (is_kept) {
            memcpy(block, first, sizeof block);
            *first = block;
            kr_pool->kept += capacity;
        }
        kr_pool_leave();
    }
    if (!is_kept) free(block);
}

static void kr_give_large(uint8_t *block, int64_t capacity, int kind) {
    kr_idle_block given = {block, capacity, kr_touched_bytes(block, capacity), kind, 0};
    kr_freed_blocks freed = {.count = 0};
    int is_entered = kr_pool_enter();
    if (is_entered) {
        given.is_offered = kr_pool->kept + kr_pool->large.held + given.touched > KR_POOL_KEPT;
        is_entered = !given.is_offered || kr_offer_bytes(block, capacity);
        if (is_entered) kr_idle_give(&kr_pool->large, given, &freed);
        kr_pool_leave();
    }
    if (!is_entered) free(block);
    for (int i = 0; i < freed.count; i++) free(freed.block[i]);
}

static void kr_give_pooled(uint8_t *block, int64_t capacity, int kind) {
    if (!block || !kr_pool_keeps(capacity))
        free(block);
    else if (capacity >= KR_POOL_LARGE)
        kr_give_large(block, capacity, kind);
    else
        kr_give_small(block, capacity);
}

/* A block that several owners share. Its bytes start behind this head. */
typedef struct {
    atomic_int owners;
    int kind; /* any number: see kr_idle_block */
    int64_t capacity;
} kr_block;

enum { KR_BLOCK_HEAD = KR_POOL_ALIGNMENT };

static inline uint8_t *kr_block_bytes(kr_block *block) { return (uint8_t *)block + KR_BLOCK_HEAD; }

/* A block with one owner; NULL when memory is short. */
static inline kr_block *kr_block_open(int64_t size, int kind) {
    if (size < 0 || size > INT64_MAX / 2) return 0;
    int64_t capacity = kr_pool_capacity(size + KR_BLOCK_HEAD);
    kr_block *block = (kr_block *)(void *)kr_take_pooled(&capacity, kind);
    if (!block) return 0;
    atomic_init(&block->owners, 1);
    block->kind = kind;
    block->capacity = capacity;
    return block;
}

static inline kr_block *kr_block_share(kr_block *block) {
    atomic_fetch_add_explicit(&block->owners, 1, memory_order_relaxed);
    return block;
}

static inline void kr_block_close(kr_block *block) {
    if (block && atomic_fetch_sub_explicit(&block->owners, 1, memory_order_acq_rel) == 1)
        kr_give_pooled((uint8_t *)block, block->capacity, block->kind);
}

#endif
