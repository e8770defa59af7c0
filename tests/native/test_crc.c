/* base/crc.h: published sums, the instructions against the tables, and the constants of the joining worked out again.
 */
#include "bytes.h"
#include "check.h"

enum { LONGEST = 4096, STARTS = 65, MOST_KERNELS = 3 };

static void test_known(void) {
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    static bytes read_command; /* RFC 3720, B.4 */
    put_hex(&read_command, "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018"
                           "28000000 00000000 02000000 00000000");
    const uint8_t *digits = (const uint8_t *)"123456789";
    const uint8_t *fox = (const uint8_t *)"The quick brown fox jumps over the lazy dog";
    CHECK_INT(0, kr_crc32c(0, zeros, 0));
    CHECK_INT(0xe3069283, kr_crc32c(0, digits, 9));
    CHECK_INT(0x22620404, kr_crc32c(0, fox, 43));
    CHECK_INT(0x8a9136aa, kr_crc32c(0, zeros, 32));
    CHECK_INT(0x62a8ab43, kr_crc32c(0, ones, 32));
    CHECK_INT(0x46dd794e, kr_crc32c(0, up, 32));
    CHECK_INT(0x113fdb5c, kr_crc32c(0, down, 32));
    CHECK_INT(0xd9963a56, kr_crc32c(0, read_command.at, 48));
    CHECK_INT(0, kr_crc32(0, zeros, 0));
    CHECK_INT(0xcbf43926, kr_crc32(0, digits, 9));
    CHECK_INT(0x414fa339, kr_crc32(0, fox, 43));
    CHECK_INT(0x190a55ad, kr_crc32(0, zeros, 32));
    CHECK_INT(0x91267e8a, kr_crc32(0, up, 32));
}

/* A bit at a time, as the polynomials are defined. */
static uint32_t crc_by_bits(uint32_t polynomial, const uint8_t *p, int64_t n) {
    uint32_t c = ~0u;
    for (int64_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int bit = 0; bit < 8; bit++) c = (c >> 1) ^ ((c & 1u) ? polynomial : 0u);
    }
    return ~c;
}

/* All that this processor could choose. Returns how many. */
static int kernels(kr_crc_function found[MOST_KERNELS]) {
    int count = 0;
    found[count++] = kr_crc32c;
#if defined(__x86_64__)
    if (kr_crc32c_x86_supported()) found[count++] = kr_crc32c_x86;
    if (kr_crc32c_avx512_supported()) found[count++] = kr_crc32c_avx512;
#endif
    return count;
}

static void test_every_length(void) {
    kr_crc_function kernel[MOST_KERNELS];
    int count = kernels(kernel);
    uint8_t random[LONGEST];
    for (int i = 0; i < LONGEST; i++) random[i] = (uint8_t)random_next();
    for (int64_t n = 0; n <= LONGEST; n++) {
        uint8_t *p = exact_copy(random + (LONGEST - n), n);
        for (int64_t start = 0; start < STARTS && start <= n; start++) {
            uint32_t before = (uint32_t)random_next(), sum = kr_crc32c_portable(before, p + start, (size_t)(n - start));
            for (int i = 0; i < count; i++) CHECK_INT(sum, kernel[i](before, p + start, (size_t)(n - start)));
        }
        if (n < 64 || n % 97 == 0) {
            CHECK_INT(crc_by_bits(KR_CRC32C_POLYNOMIAL, p, n), kr_crc32c_portable(0, p, (size_t)n));
            CHECK_INT(crc_by_bits(KR_CRC32_POLYNOMIAL, p, n), kr_crc32(0, p, (size_t)n));
        }
        exact_free(p, n);
    }
}

static void test_continued(void) {
    uint8_t random[LONGEST];
    for (int i = 0; i < LONGEST; i++) random[i] = (uint8_t)random_next();
    uint32_t whole = kr_crc32c(0, random, LONGEST), whole32 = kr_crc32(0, random, LONGEST);
    for (size_t cut = 0; cut <= LONGEST; cut += cut < 20 ? 1 : 61) {
        CHECK_INT(whole, kr_crc32c(kr_crc32c(0, random, cut), random + cut, LONGEST - cut));
        CHECK_INT(whole, kr_crc32c_portable(kr_crc32c(0, random, cut), random + cut, LONGEST - cut));
        CHECK_INT(whole32, kr_crc32(kr_crc32(0, random, cut), random + cut, LONGEST - cut));
    }
}

#if defined(__x86_64__)
/* x^n modulo the polynomial of CRC32C, bits reversed: x^0 is the top bit, and a step multiplies by x. */
static uint32_t power_of_x(int n) {
    uint32_t c = 0x80000000u;
    while (n--) c = (c >> 1) ^ ((c & 1u) ? KR_CRC32C_POLYNOMIAL : 0u);
    return c;
}

static void test_constants(void) {
    CHECK_INT(power_of_x(8 * 2 * KR_CRC_LONG - 33), KR_CRC_LONG_TWICE);
    CHECK_INT(power_of_x(8 * KR_CRC_LONG - 33), KR_CRC_LONG_ONCE);
    CHECK_INT(power_of_x(8 * 2 * KR_CRC_SHORT - 33), KR_CRC_SHORT_TWICE);
    CHECK_INT(power_of_x(8 * KR_CRC_SHORT - 33), KR_CRC_SHORT_ONCE);
    CHECK_INT(power_of_x(8 * KR_CRC_FOLDED + 63), KR_CRC_FOLD_LOW);
    CHECK_INT(power_of_x(8 * KR_CRC_FOLDED - 1), KR_CRC_FOLD_HIGH);
    CHECK_INT(power_of_x(8 * KR_CRC_VECTOR + 63), KR_CRC_VECTOR_LOW);
    CHECK_INT(power_of_x(8 * KR_CRC_VECTOR - 1), KR_CRC_VECTOR_HIGH);
}
#else
static void test_constants(void) {}
#endif

int main(void) {
    kr_crc_init();
    test_known();
    test_every_length();
    test_continued();
    test_constants();
    return check_report("crc");
}
