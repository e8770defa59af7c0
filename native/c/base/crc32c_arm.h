/* CRC32C with the crc32c instructions of ARMv8. Included by base/crc.h only. */
#ifndef KRAFTLOG_BASE_CRC32C_ARM_H
#define KRAFTLOG_BASE_CRC32C_ARM_H

#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__clang__)
#define KR_TARGET_CRC __attribute__((target("crc")))
#else
#define KR_TARGET_CRC __attribute__((target("+crc")))
#endif

static inline int kr_crc32c_arm_supported(void) {
#if defined(__APPLE__)
    return 1; /* every 64-bit Mac */
#elif defined(__linux__)
    return (getauxval(AT_HWCAP) >> 7) & 1; /* HWCAP_CRC32 */
#else
    return 0;
#endif
}

KR_TARGET_CRC static uint32_t kr_crc32c_arm(uint32_t crc, const uint8_t *p, size_t n) {
    uint32_t c = ~crc;
    uint64_t word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        c = __crc32cd(c, word);
    }
    while (n--) c = __crc32cb(c, *p++);
    return ~c;
}

#endif
