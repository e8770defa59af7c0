/* Variable-length integers: zigzag, then groups of seven bits, lowest first; the high bit says that more follow.
 * A varint takes at most 5 bytes and a varlong at most 10. Like Kafka, longer forms than needed are accepted and
 * surplus bits in the last byte are dropped. Format: "Record" in Kafka's protocol documentation.
 */
#ifndef KRAFTLOG_BASE_VARINT_H
#define KRAFTLOG_BASE_VARINT_H

#include <stdint.h>

#define KR_LIKELY(x)   __builtin_expect(!!(x), 1)
#define KR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#ifdef KR_NOT_INLINED /* of the sanitizers: a fifth of the code, and of the time to compile it */
#define KR_ALWAYS_INLINE static inline
#else
#define KR_ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

#define KR_VARINT_MAX  5
#define KR_VARLONG_MAX 10

static inline int32_t kr_unzigzag32(uint32_t x) { return (int32_t)((x >> 1) ^ (0u - (x & 1u))); }
static inline int64_t kr_unzigzag64(uint64_t x) { return (int64_t)((x >> 1) ^ (0ull - (x & 1ull))); }
static inline uint32_t kr_zigzag32(int32_t x) { return ((uint32_t)x << 1) ^ (uint32_t)(x < 0 ? -1 : 0); }
static inline uint64_t kr_zigzag64(int64_t x) { return ((uint64_t)x << 1) ^ (x < 0 ? ~0ull : 0ull); }

/* Reads without a bounds check: the caller has made sure that KR_VARINT_MAX bytes can be read.
 * Returns the byte behind, or NULL when the fifth byte has its high bit set. */
KR_ALWAYS_INLINE const uint8_t *kr_varint_unchecked(const uint8_t *p, int32_t *out) {
    uint32_t x = p[0];
    if (x < 0x80) {
        *out = kr_unzigzag32(x);
        return p + 1;
    }
    x = (x & 0x7f) | ((uint32_t)p[1] << 7);
    if (p[1] < 0x80) {
        *out = kr_unzigzag32(x);
        return p + 2;
    }
    x = (x & 0x3fff) | ((uint32_t)p[2] << 14);
    if (p[2] < 0x80) {
        *out = kr_unzigzag32(x);
        return p + 3;
    }
    x = (x & 0x1fffff) | ((uint32_t)p[3] << 21);
    if (p[3] < 0x80) {
        *out = kr_unzigzag32(x);
        return p + 4;
    }
    if (p[4] >= 0x80) return 0;
    x = (x & 0xfffffff) | ((uint32_t)p[4] << 28);
    *out = kr_unzigzag32(x);
    return p + 5;
}

/* As above, for KR_VARLONG_MAX bytes. */
KR_ALWAYS_INLINE const uint8_t *kr_varlong_unchecked(const uint8_t *p, int64_t *out) {
    uint64_t x = p[0];
    if (x < 0x80) {
        *out = kr_unzigzag64(x);
        return p + 1;
    }
    x &= 0x7f;
    for (unsigned i = 1; i < KR_VARLONG_MAX; i++) {
        uint64_t byte = p[i];
        x |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = kr_unzigzag64(x);
            return p + i + 1;
        }
    }
    return 0;
}

/* Reads at most `most` groups out of [p, end), not folded. Returns the byte behind, or NULL: the bytes end within the
 * number when there are fewer than `most`, else it is too long. */
static inline const uint8_t *kr_uvarint(const uint8_t *p, const uint8_t *end, int most, uint64_t *out) {
    uint64_t x = 0;
    for (int i = 0; i < most && p < end; i++) {
        x |= (uint64_t)(*p & 0x7f) << (7 * i);
        if (*p++ < 0x80) {
            *out = x;
            return p;
        }
    }
    return 0;
}

static inline uint8_t *kr_put_uvarint64(uint8_t *p, uint64_t x) {
    if (x < 0x80) {
        *p = (uint8_t)x;
        return p + 1;
    }
    if (x < 0x4000) {
        p[0] = (uint8_t)(x | 0x80);
        p[1] = (uint8_t)(x >> 7);
        return p + 2;
    }
    while (x >= 0x80) {
        *p++ = (uint8_t)(x | 0x80);
        x >>= 7;
    }
    *p++ = (uint8_t)x;
    return p;
}

static inline uint8_t *kr_put_varint(uint8_t *p, int32_t value) { return kr_put_uvarint64(p, kr_zigzag32(value)); }
static inline uint8_t *kr_put_varlong(uint8_t *p, int64_t value) { return kr_put_uvarint64(p, kr_zigzag64(value)); }

/* Bytes that an unsigned group coding of x takes: one for each started group of seven bits. */
static inline int kr_uvarint64_size(uint64_t x) { return (9 * (63 - __builtin_clzll(x | 1)) + 73) >> 6; }
static inline int kr_varint_size(int32_t value) { return kr_uvarint64_size(kr_zigzag32(value)); }
static inline int kr_varlong_size(int64_t value) { return kr_uvarint64_size(kr_zigzag64(value)); }

#endif
