/* CRC32C (Castagnoli), which covers record batches of magic 2, and CRC32 (IEEE), which covers older messages.
 *
 * On x86-64 CRC32C runs on the crc32 instruction in three interleaved streams that are joined by carry-less
 * multiplication, or where there is AVX-512 on carry-less multiplication of vectors; on arm64 on its own crc32c
 * instruction. They are chosen at run time; elsewhere eight table look-ups a word. All functions take and return the
 * plain checksum (0 for no bytes), so that a sum can be continued.
 */
#ifndef KRAFTLOG_BASE_CRC_H
#define KRAFTLOG_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KR_CRC32C_POLYNOMIAL 0x82F63B78u
#define KR_CRC32_POLYNOMIAL  0xEDB88320u

typedef struct {
    uint32_t word[8][256];
} kr_crc_table;

static inline void kr_crc_table_init(kr_crc_table *t, uint32_t polynomial) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = (c >> 1) ^ ((c & 1u) ? polynomial : 0u);
        t->word[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++) t->word[k][i] = (t->word[k - 1][i] >> 8) ^ t->word[0][t->word[k - 1][i] & 0xff];
}

/* Eight bytes a step, independent of byte order. */
static inline uint32_t kr_crc_by_table(const kr_crc_table *t, uint32_t crc, const uint8_t *p, size_t n) {
    uint32_t c = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        c = t->word[7][c & 0xff] ^ t->word[6][(c >> 8) & 0xff] ^ t->word[5][(c >> 16) & 0xff] ^ t->word[4][c >> 24] ^
            t->word[3][p[4]] ^ t->word[2][p[5]] ^ t->word[1][p[6]] ^ t->word[0][p[7]];
    }
    while (n--) c = (c >> 8) ^ t->word[0][(c ^ *p++) & 0xff];
    return ~c;
}

static kr_crc_table kr_crc32c_table;
static kr_crc_table kr_crc32_table;

static inline uint32_t kr_crc32c_portable(uint32_t crc, const uint8_t *p, size_t n) {
    return kr_crc_by_table(&kr_crc32c_table, crc, p, n);
}

static inline uint32_t kr_crc32(uint32_t crc, const uint8_t *p, size_t n) {
    return kr_crc_by_table(&kr_crc32_table, crc, p, n);
}

#if defined(__x86_64__)
#include "base/crc32c_avx512.h"
#elif defined(__aarch64__)
#include "base/crc32c_arm.h"
#endif

typedef uint32_t (*kr_crc_function)(uint32_t crc, const uint8_t *p, size_t n);
static kr_crc_function kr_crc32c_chosen = kr_crc32c_portable;

/* Fills the tables and chooses the instruction set; called once, before any other function of this header. */
static inline void kr_crc_init(void) {
    kr_crc_table_init(&kr_crc32c_table, KR_CRC32C_POLYNOMIAL);
    kr_crc_table_init(&kr_crc32_table, KR_CRC32_POLYNOMIAL);
#if defined(__x86_64__)
    if (kr_crc32c_x86_supported()) kr_crc32c_chosen = kr_crc32c_x86;
    if (kr_crc32c_avx512_supported()) kr_crc32c_chosen = kr_crc32c_avx512;
#elif defined(__aarch64__)
    if (kr_crc32c_arm_supported()) kr_crc32c_chosen = kr_crc32c_arm;
#endif
}

static inline uint32_t kr_crc32c(uint32_t crc, const uint8_t *p, size_t n) { return kr_crc32c_chosen(crc, p, n); }

#endif
