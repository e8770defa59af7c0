/* Asks for large pages behind a block of memory, where the system has them: a block of hundreds of megabytes that is
 * written once would otherwise cost a page fault for every 4 KiB. */
#ifndef KRAFTLOG_LARGE_MEMORY_H
#define KRAFTLOG_LARGE_MEMORY_H

#include <stddef.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

static inline void kr_advise_large(void *begin, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    (void)madvise(begin, size, MADV_HUGEPAGE); /* advice: a refusal changes nothing */
#else
    (void)begin;
    (void)size;
#endif
}

#endif
