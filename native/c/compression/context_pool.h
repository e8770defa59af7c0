/* Contexts of a compression library that are used again: each costs an allocation of 100 KiB to some MiB.
 *
 * No thread waits: while one takes or gives, others make their own, and a process forked meanwhile does not hang.
 */
#ifndef KRAFTLOG_COMPRESSION_CONTEXT_POOL_H
#define KRAFTLOG_COMPRESSION_CONTEXT_POOL_H

#include <stdatomic.h>
#include <stddef.h>

enum { KR_CONTEXTS_KEPT = 4 };

typedef struct {
    atomic_flag busy;
    int count;
    void *kept[KR_CONTEXTS_KEPT];
    int kind[KR_CONTEXTS_KEPT]; /* such as a level that a context is made for */
} kr_context_pool;

/* A context of that kind, or NULL. */
static inline void *kr_context_take(kr_context_pool *pool, int kind) {
    void *context = NULL;
    if (atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire)) return NULL;
    for (int i = pool->count - 1; i >= 0 && !context; i--) {
        if (pool->kind[i] != kind) continue;
        context = pool->kept[i];
        pool->count--;
        pool->kept[i] = pool->kept[pool->count];
        pool->kind[i] = pool->kind[pool->count];
    }
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
    return context;
}

/* Whether the context is kept; else the caller frees it. */
static inline int kr_context_give(kr_context_pool *pool, int kind, void *context) {
    if (atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire)) return 0;
    int is_kept = pool->count < KR_CONTEXTS_KEPT;
    if (is_kept) {
        pool->kept[pool->count] = context;
        pool->kind[pool->count++] = kind;
    }
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
    return is_kept;
}

#endif
