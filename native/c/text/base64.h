/* Base64: the alphabet of RFC 4648 with padding, and that of URLs. */
#ifndef KRAFTLOG_TEXT_BASE64_H
#define KRAFTLOG_TEXT_BASE64_H

#include <stdint.h>

static const char kr_base64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char kr_base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static inline int64_t kr_base64_size(int64_t n) { return (n + 2) / 3 * 4; }

/* Writes kr_base64_size bytes, and returns where they end. */
static inline uint8_t *kr_base64_write(uint8_t *to, const uint8_t *from, int64_t n) {
    for (; n >= 3; n -= 3, from += 3, to += 4) {
        uint32_t word = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        for (int i = 0; i < 4; i++) to[i] = (uint8_t)kr_base64[(word >> (18 - 6 * i)) & 63];
    }
    if (!n) return to;
    uint32_t word = (uint32_t)from[0] << 16 | (n > 1 ? (uint32_t)from[1] << 8 : 0);
    to[0] = (uint8_t)kr_base64[word >> 18];
    to[1] = (uint8_t)kr_base64[(word >> 12) & 63];
    to[2] = n > 1 ? (uint8_t)kr_base64[(word >> 6) & 63] : '=';
    to[3] = '=';
    return to + 4;
}

#endif
