/* Kafka's integers are big-endian. Loads and stores go through memcpy, so that no alignment is assumed. */
#ifndef KRAFTLOG_BASE_ENDIAN_H
#define KRAFTLOG_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define KR_SWAP16(x) (x)
#define KR_SWAP32(x) (x)
#define KR_SWAP64(x) (x)
#else
#define KR_SWAP16(x) __builtin_bswap16(x)
#define KR_SWAP32(x) __builtin_bswap32(x)
#define KR_SWAP64(x) __builtin_bswap64(x)
#endif

static inline int16_t kr_load_int16(const uint8_t *p) {
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return (int16_t)KR_SWAP16(x);
}

static inline uint32_t kr_load_uint32(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return KR_SWAP32(x);
}

static inline int32_t kr_load_int32(const uint8_t *p) { return (int32_t)kr_load_uint32(p); }

static inline int64_t kr_load_int64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return (int64_t)KR_SWAP64(x);
}

static inline void kr_store_int16(uint8_t *p, int16_t value) {
    uint16_t x = KR_SWAP16((uint16_t)value);
    memcpy(p, &x, sizeof x);
}

static inline void kr_store_uint32(uint8_t *p, uint32_t value) {
    uint32_t x = KR_SWAP32(value);
    memcpy(p, &x, sizeof x);
}

static inline void kr_store_int32(uint8_t *p, int32_t value) { kr_store_uint32(p, (uint32_t)value); }

static inline void kr_store_int64(uint8_t *p, int64_t value) {
    uint64_t x = KR_SWAP64((uint64_t)value);
    memcpy(p, &x, sizeof x);
}

/* Sums that wrap as Java's do: offsets and timestamps of a damaged batch must not be undefined behaviour. */
static inline int64_t kr_add_wrapping(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

#endif
