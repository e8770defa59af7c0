/* CRC32C with AVX-512 and VPCLMULQDQ. Included by base/crc.h only.
 *
 * The bytes are the coefficients of a polynomial. 256 of them are held in four vectors; each step multiplies these by
 * x^(8 * 256) mod P, 64 bits at a time, and adds the next 256 bytes. What is left in the end is congruent to all that
 * was read, so that the crc32 instruction sums 64 bytes instead.
 */
#ifndef KRAFTLOG_BASE_CRC32C_AVX512_H
#define KRAFTLOG_BASE_CRC32C_AVX512_H

#include "base/crc32c_x86.h"

enum { KR_CRC_VECTOR = 64, KR_CRC_FOLDED = 4 * KR_CRC_VECTOR };

/* x^(8 * bytes + 63) and x^(8 * bytes - 1) mod P, bits reversed: for the lower half of each 128 bits, which comes
 * first, and the upper half. tests/native/test_crc.c works these numbers out again. */
#define KR_CRC_FOLD_LOW    0xe9a5d8beu /* by KR_CRC_FOLDED */
#define KR_CRC_FOLD_HIGH   0x1426a815u
#define KR_CRC_VECTOR_LOW  0x1c19243bu /* by KR_CRC_VECTOR */
#define KR_CRC_VECTOR_HIGH 0x75bba45bu

#define KR_TARGET_AVX512 __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))

static inline int kr_crc32c_avx512_supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") && kr_crc32c_x86_supported();
}

/* A multiplier of both halves of each 128 bits. The product of two reversed numbers of 64 bits is reversed in 127 bits:
 * that is why the exponents above are one less. */
KR_TARGET_AVX512 static inline __m512i kr_crc_multiplier(uint32_t low, uint32_t high) {
    return _mm512_broadcast_i32x4(_mm_set_epi32((int)high, 0, (int)low, 0));
}

KR_TARGET_AVX512 static inline __m512i kr_crc_fold(__m512i sum, __m512i multiplier, __m512i next) {
    enum { EXCLUSIVE_OR_OF_THREE = 0x96 };
    __m512i low = _mm512_clmulepi64_epi128(sum, multiplier, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(sum, multiplier, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, EXCLUSIVE_OR_OF_THREE);
}

/* The sum over the 64 bytes of a vector that stands for all that was read so far. */
KR_TARGET_AVX512 static inline uint32_t kr_crc_of_vector(__m512i vector) {
    uint64_t words[KR_CRC_VECTOR / 8], c = 0;
    _mm512_storeu_si512(words, vector);
    for (int i = 0; i < KR_CRC_VECTOR / 8; i++) c = _mm_crc32_u64(c, words[i]);
    return ~(uint32_t)c;
}

KR_TARGET_AVX512 static uint32_t kr_crc32c_avx512(uint32_t crc, const uint8_t *p, size_t n) {
    if (n < 2 * KR_CRC_FOLDED) return kr_crc32c_x86(crc, p, n);
    const __m512i by_folded = kr_crc_multiplier(KR_CRC_FOLD_LOW, KR_CRC_FOLD_HIGH);
    const __m512i by_vector = kr_crc_multiplier(KR_CRC_VECTOR_LOW, KR_CRC_VECTOR_HIGH);
    const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
    __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), start), b = _mm512_loadu_si512(p + KR_CRC_VECTOR);
    __m512i c = _mm512_loadu_si512(p + 2 * KR_CRC_VECTOR), d = _mm512_loadu_si512(p + 3 * KR_CRC_VECTOR);
    for (p += KR_CRC_FOLDED, n -= KR_CRC_FOLDED; n >= KR_CRC_FOLDED; p += KR_CRC_FOLDED, n -= KR_CRC_FOLDED) {
        a = kr_crc_fold(a, by_folded, _mm512_loadu_si512(p));
        b = kr_crc_fold(b, by_folded, _mm512_loadu_si512(p + KR_CRC_VECTOR));
        c = kr_crc_fold(c, by_folded, _mm512_loadu_si512(p + 2 * KR_CRC_VECTOR));
        d = kr_crc_fold(d, by_folded, _mm512_loadu_si512(p + 3 * KR_CRC_VECTOR));
    }
    a = kr_crc_fold(kr_crc_fold(kr_crc_fold(a, by_vector, b), by_vector, c), by_vector, d);
    return kr_crc32c_x86(kr_crc_of_vector(a), p, n);
}

#endif
