/* How much fits the second-level cache of the machine: what is written there and used again does not go to memory. */
#ifndef KRAFTLOG_BASE_CACHE_SIZE_H
#define KRAFTLOG_BASE_CACHE_SIZE_H

#include <stdint.h>
#include <unistd.h>

enum { KR_USUAL_CACHE = 1 << 20, KR_LEAST_CACHE = 512 << 10, KR_MOST_CACHE = 2 << 20 };

/* Bytes of the second-level cache of one processor; a usual number where the system does not say. */
static inline int64_t kr_cache_size(void) {
    int64_t size = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (size <= 0) return KR_USUAL_CACHE;
    return size < KR_LEAST_CACHE ? KR_LEAST_CACHE : size > KR_MOST_CACHE ? KR_MOST_CACHE : size;
}

#endif
