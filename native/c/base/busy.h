/* A mark that a thread leaves on an object while it works on it, so that a second one is refused instead of waiting. */
#ifndef KRAFTLOG_BASE_BUSY_H
#define KRAFTLOG_BASE_BUSY_H

#include <stdatomic.h>

typedef struct {
    atomic_flag flag;
} kr_busy;

/* Whether the object was free; it is the caller's then, until kr_busy_leave. Zeroed memory is a free object. */
static inline int kr_busy_enter(kr_busy *b) {
    return !atomic_flag_test_and_set_explicit(&b->flag, memory_order_acquire);
}
static inline void kr_busy_leave(kr_busy *b) { atomic_flag_clear_explicit(&b->flag, memory_order_release); }

#endif
