/* Header keys are UTF-8. Kafka, as Java does, replaces what is not by U+FFFD: one for each maximal part of a broken
 * sequence (Unicode 3.9, table 3-7), where a surrogate, whole or cut off, is one such part. So does this; a valid key
 * is copied as it is. */
#ifndef KRAFTLOG_TEXT_UTF8_H
#define KRAFTLOG_TEXT_UTF8_H

#include "base/copy.h"

enum { KR_UTF8_GROWTH = 3 }; /* one broken byte becomes three */

/* Bytes of the sequence at p: positive when it is whole; else minus the bytes to replace. */
static inline int kr_utf8_sequence(const uint8_t *p, const uint8_t *end) {
    uint8_t first = p[0], low = 0x80, high = 0xbf;
    int more;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return -1;
    if (first < 0xe0) {
        more = 1;
    } else if (first < 0xf0) {
        more = 2;
        if (first == 0xe0) low = 0xa0;
    } else {
        more = 3;
        if (first == 0xf0) low = 0x90;
        if (first == 0xf4) high = 0x8f;
    }
    for (int i = 1; i <= more; i++) {
        if (p + i >= end || p[i] < low || p[i] > high) return -i;
        low = 0x80;
        high = 0xbf;
    }
    return first == 0xed && p[1] > 0x9f ? -3 : more + 1;
}

#define KR_NOT_ASCII 0x8080808080808080ull

/* Whether n bytes are UTF-8, for text that is nearly always ASCII. */
static inline int kr_is_utf8(const uint8_t *p, int64_t n) {
    const uint8_t *end = p + n;
    uint64_t high = 0;
    int64_t i = 0;
    for (; n - i >= 8; i += 8) high |= kr_load_word(p + i);
    for (; i < n; i++) high |= p[i];
    if (KR_LIKELY(!(high & KR_NOT_ASCII))) return 1;
    for (int length; p < end; p += length)
        if ((length = kr_utf8_sequence(p, end)) < 0) return 0;
    return 1;
}

/* Copies n bytes as valid UTF-8 and returns the bytes written, at most KR_UTF8_GROWTH * n. */
static inline int64_t kr_copy_utf8(uint8_t *to, const uint8_t *from, int64_t n) {
    const uint8_t *p = from, *end = from + n;
    uint8_t *start = to;
    while (p < end) {
        int length = kr_utf8_sequence(p, end);
        if (length > 0) {
            memcpy(to, p, (size_t)length);
            to += length;
            p += length;
        } else {
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
            p -= length;
        }
    }
    return to - start;
}

/* The same, for text that is nearly always ASCII and, when `padded`, has KR_PADDING bytes behind it on both sides. */
KR_ALWAYS_INLINE int64_t kr_copy_text(uint8_t *to, const uint8_t *from, int64_t n, const int padded) {
    uint64_t high = 0;
    int64_t i = 0;
    if (padded) {
        kr_copy_padded(to, from, n);
        for (; i + 8 < n; i += 8) high |= kr_load_word(from + i);
        high |= n ? kr_load_word(from + i) << 8 * (8 - (n - i)) : 0;
    } else {
        memcpy(to, from, (size_t)n);
        for (; i + 8 <= n; i += 8) high |= kr_load_word(from + i);
        for (; i < n; i++) high |= from[i];
    }
    return KR_LIKELY(!(high & KR_NOT_ASCII)) ? n : kr_copy_utf8(to, from, n);
}

#endif
