/* MurmurHash2 of 32 bits as Kafka's Utils.murmur2 has it: with Kafka's seed, words little-endian. Its default
 * partitioner places the keys of records by it. */
#ifndef KRAFTLOG_BASE_MURMUR2_H
#define KRAFTLOG_BASE_MURMUR2_H

#include <stdint.h>

#define KR_MURMUR2_SEED       0x9747B28Cu
#define KR_MURMUR2_MULTIPLIER 0x5BD1E995u

enum { KR_MURMUR2_SHIFT = 24 };

static inline int32_t kr_murmur2(const uint8_t *p, int64_t n) {
    uint32_t h = KR_MURMUR2_SEED ^ (uint32_t)n;
    for (; n >= 4; p += 4, n -= 4) {
        uint32_t k = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        k *= KR_MURMUR2_MULTIPLIER;
        k ^= k >> KR_MURMUR2_SHIFT;
        h = (h * KR_MURMUR2_MULTIPLIER) ^ (k * KR_MURMUR2_MULTIPLIER);
    }
    if (n > 0) {
        for (int64_t i = 0; i < n; i++) h ^= (uint32_t)p[i] << 8 * i;
        h *= KR_MURMUR2_MULTIPLIER;
    }
    h ^= h >> 13;
    h *= KR_MURMUR2_MULTIPLIER;
    return (int32_t)(h ^ h >> 15);
}

#endif
