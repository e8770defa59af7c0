/* CRC32C with SSE4.2 and PCLMULQDQ. Included by base/crc32c_avx512.h only.
 *
 * The crc32 instruction takes three cycles but one can start in each, so three neighbouring blocks are summed side by
 * side and joined: multiplying by x^(8 * bytes) mod P moves a sum over the blocks that follow it. Small blocks keep the
 * three streams within reach of the hardware prefetcher on data that comes from memory.
 */
#ifndef KRAFTLOG_BASE_CRC32C_X86_H
#define KRAFTLOG_BASE_CRC32C_X86_H

#include <immintrin.h>

#define KR_CRC_LONG  256 /* bytes a stream while there is much to sum */
#define KR_CRC_SHORT 64  /* and for what is left */

/* x^(8 * 2 * block - 33) and x^(8 * block - 33) mod P, bits reversed; the 33 pays for the reduction that the crc32
 * instruction does. tests/native/test_crc.c works these numbers out again. */
#define KR_CRC_LONG_TWICE  0xdd7e3b0cu
#define KR_CRC_LONG_ONCE   0xb9e02b86u
#define KR_CRC_SHORT_TWICE 0x0d3b6092u
#define KR_CRC_SHORT_ONCE  0x9e4addf8u

#define KR_TARGET_CRC __attribute__((target("sse4.2,pclmul")))

static inline int kr_crc32c_x86_supported(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

KR_TARGET_CRC static inline uint64_t kr_crc_shift(uint64_t crc, uint32_t power) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)power), 0);
    return _mm_crc32_u64(0, (unsigned long long)_mm_cvtsi128_si64(product));
}

KR_TARGET_CRC static inline uint64_t kr_crc_three(uint64_t crc, const uint8_t *p, size_t block, uint32_t twice,
                                                  uint32_t once) {
    uint64_t a = crc, b = 0, c = 0, x, y, z;
    for (size_t i = 0; i < block; i += 8) {
        memcpy(&x, p + i, 8);
        memcpy(&y, p + block + i, 8);
        memcpy(&z, p + 2 * block + i, 8);
        a = _mm_crc32_u64(a, x);
        b = _mm_crc32_u64(b, y);
        c = _mm_crc32_u64(c, z);
    }
    return kr_crc_shift(a, twice) ^ kr_crc_shift(b, once) ^ c;
}

KR_TARGET_CRC static uint32_t kr_crc32c_x86(uint32_t crc, const uint8_t *p, size_t n) {
    uint64_t c = ~crc & 0xffffffffu, word;
    for (; n >= 3 * KR_CRC_LONG; p += 3 * KR_CRC_LONG, n -= 3 * KR_CRC_LONG)
        c = kr_crc_three(c, p, KR_CRC_LONG, KR_CRC_LONG_TWICE, KR_CRC_LONG_ONCE);
    for (; n >= 3 * KR_CRC_SHORT; p += 3 * KR_CRC_SHORT, n -= 3 * KR_CRC_SHORT)
        c = kr_crc_three(c, p, KR_CRC_SHORT, KR_CRC_SHORT_TWICE, KR_CRC_SHORT_ONCE);
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        c = _mm_crc32_u64(c, word);
    }
    if (n & 4) {
        uint32_t half;
        memcpy(&half, p, 4);
        c = _mm_crc32_u32((uint32_t)c, half);
        p += 4;
    }
    if (n & 2) {
        uint16_t quarter;
        memcpy(&quarter, p, 2);
        c = _mm_crc32_u16((uint32_t)c, quarter);
        p += 2;
    }
    if (n & 1) c = _mm_crc32_u8((uint32_t)c, *p);
    return ~(uint32_t)c;
}

#endif
