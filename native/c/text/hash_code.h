/* Java's String.hashCode of UTF-8 text, over the UTF-16 code units that Java holds it in: a character beyond U+FFFF is
 * two of them. What is not UTF-8 counts as the U+FFFD that Java reads it as (text/utf8.h). Coordinators place groups
 * and transactional ids by it. */
#ifndef KRAFTLOG_TEXT_HASH_CODE_H
#define KRAFTLOG_TEXT_HASH_CODE_H

#include "text/utf8.h"

#define KR_HASH_CODE_MULTIPLIER  31u
#define KR_REPLACEMENT_CHARACTER 0xFFFDu

/* The character of a whole sequence of the given length. */
static inline uint32_t kr_utf8_character(const uint8_t *p, int length) {
    static const uint8_t bits_of_first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t character = p[0] & bits_of_first[length];
    for (int i = 1; i < length; i++) character = character << 6 | (p[i] & 0x3fu);
    return character;
}

static inline int32_t kr_hash_code(const uint8_t *p, int64_t n) {
    const uint8_t *end = p + n;
    uint32_t h = 0;
    while (p < end) {
        int length = kr_utf8_sequence(p, end);
        uint32_t unit = length > 0 ? kr_utf8_character(p, length) : KR_REPLACEMENT_CHARACTER;
        if (unit > 0xffff) { /* a pair of surrogates */
            h = h * KR_HASH_CODE_MULTIPLIER + (0xd800 + ((unit - 0x10000) >> 10));
            unit = 0xdc00 + ((unit - 0x10000) & 0x3ff);
        }
        h = h * KR_HASH_CODE_MULTIPLIER + unit;
        p += length > 0 ? length : -length;
    }
    return (int32_t)h;
}

#endif
