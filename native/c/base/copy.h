/* Copies of short fields in whole words, which read and write some bytes more than they are asked for. */
#ifndef KRAFTLOG_BASE_COPY_H
#define KRAFTLOG_BASE_COPY_H

#include <stdint.h>
#include <string.h>

#include "base/varint.h"

/* Bytes that can be read behind the source of a padded copy, and written behind its target. */
enum { KR_PADDING = 64 };

static inline void kr_copy_padded(uint8_t *to, const uint8_t *from, int64_t n) {
    if (n > 64) {
        memcpy(to, from, (size_t)n);
        return;
    }
    memcpy(to, from, 16);
    for (int64_t i = 16; i < n; i += 16) memcpy(to + i, from + i, 16);
}

/* Copies n bytes and puts zeros behind them, for what reads on behind the end of what it was given. */
static inline void kr_copy_before_zeros(uint8_t *to, const uint8_t *from, int64_t n, int64_t zeros) {
    memcpy(to, from, (size_t)n);
    memset(to + n, 0, (size_t)zeros);
}

static inline uint64_t kr_load_word(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

#endif
