/* Blocks of memory that are used again: a fresh one costs a page fault for every 4 KiB that is written to it, which is
 * as much as decoding into it. Capacities are powers of two. Under a sanitizer every block is fresh, so that its use
 * after it was given back is found. */
#ifndef KRAFTLOG_BLOCK_POOL_H
#define KRAFTLOG_BLOCK_POOL_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KR_POOL_FIRST 9                    /* blocks of 512 bytes */
#define KR_POOL_LAST  25                   /* and up to 32 MiB are kept */
#define KR_POOL_KEPT  ((int64_t)128 << 20) /* bytes, all together */
#define KR_POOL_MOST  (((int64_t)1 << 31)) /* what an Arrow offset can reach */

#if defined(__SANITIZE_ADDRESS__)
#define KR_POOL_KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KR_POOL_KEEPS 0
#endif
#endif
#ifndef KR_POOL_KEEPS
#define KR_POOL_KEEPS 1
#endif

typedef struct {
    atomic_flag busy;
    int64_t kept;
    uint8_t *first[KR_POOL_LAST + 1]; /* by the logarithm of the capacity; a block begins with the next one's address */
} kr_block_pool;

static kr_block_pool kr_pool = {ATOMIC_FLAG_INIT, 0, {0}};

static inline int kr_pool_slot(int64_t capacity) { return 63 - __builtin_clzll((uint64_t)capacity); }

/* No thread waits: while the pool is busy others allocate without it, and a process forked meanwhile does not hang. */
static inline int kr_pool_enter(void) {
    return !atomic_flag_test_and_set_explicit(&kr_pool.busy, memory_order_acquire);
}
static inline void kr_pool_leave(void) { atomic_flag_clear_explicit(&kr_pool.busy, memory_order_release); }

/* A block of a capacity that is a power of two, of KR_POOL_FIRST at least; NULL when memory is short. */
static uint8_t *kr_take_pooled(int64_t capacity) {
    int slot = kr_pool_slot(capacity);
    uint8_t *block = 0;
    if (KR_POOL_KEEPS && slot <= KR_POOL_LAST && kr_pool_enter()) {
        block = kr_pool.first[slot];
        if (block) {
            memcpy(&kr_pool.first[slot], block, sizeof block);
            kr_pool.kept -= capacity;
        }
        kr_pool_leave();
    }
    return block ? block : (uint8_t *)malloc((size_t)capacity);
}

static void kr_give_pooled(uint8_t *block, int64_t capacity) {
    int is_kept = 0;
    if (block && KR_POOL_KEEPS && kr_pool_slot(capacity) <= KR_POOL_LAST && kr_pool_enter()) {
        int slot = kr_pool_slot(capacity);
        is_kept = kr_pool.kept + capacity <= KR_POOL_KEPT;
        if (is_kept) {
            memcpy(block, &kr_pool.first[slot], sizeof block);
            kr_pool.first[slot] = block;
            kr_pool.kept += capacity;
        }
        kr_pool_leave();
    }
    if (!is_kept) free(block);
}

#endif
