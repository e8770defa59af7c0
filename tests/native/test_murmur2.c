/* arrow/hash_column.h, and base/murmur2.h and text/hash_code.h below it: answers of Kafka's own tests and of Java. */
#include "arrow/hash_column.h"
#include "bytes.h"
#include "check.h"

static const struct {
    const char *text;
    int32_t murmur2; /* UtilsTest.testMurmur2 */
} keys[] = {
    {"21", -973932308},
    {"foobar", -790332482},
    {"a-little-bit-long-string", -985981536},
    {"a-little-bit-longer-string", -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
    {"abc", 479470107},
};

static const struct {
    const char *text;
    int32_t hash_code;
} names[] = {
    {"", 0},
    {"a", 97},
    {"Hello", 69609650},
    {"polygenelubricants", INT32_MIN},
    {"\xc3\xbf", 0xff},
    {"\xef\xbf\xbf", 0xffff},
    {"\xf0\x90\x80\x80", 0xd800 * 31 + 0xdc00},
    {"\xf4\x8f\xbf\xbf", 0xdbff * 31 + 0xdfff},
    {"\xff", 0xfffd},
    {"\xf0\x9f\x98", 0xfffd}, /* cut off: one character for all of it */
    {"\xed\xa0\x80", 0xfffd}, /* a surrogate is no character of UTF-8 */
};

static void test_known(void) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t n = (int64_t)strlen(keys[i].text);
        uint8_t *p = exact_copy((const uint8_t *)keys[i].text, n);
        CHECK_INT(keys[i].murmur2, kr_murmur2(p, n));
        exact_free(p, n);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t n = (int64_t)strlen(names[i].text);
        uint8_t *p = exact_copy((const uint8_t *)names[i].text, n);
        CHECK_INT(names[i].hash_code, kr_hash_code(p, n));
        exact_free(p, n);
    }
}

/* Random bytes of every length, in memory that ends where they end. */
static void test_bounds(void) {
    uint8_t random[64];
    for (int64_t n = 0; n <= (int64_t)sizeof random; n++) {
        for (int64_t i = 0; i < n; i++) random[i] = (uint8_t)random_next();
        uint8_t *p = exact_copy(random, n);
        CHECK_INT(kr_murmur2(random, n), kr_murmur2(p, n));
        CHECK_INT(kr_hash_code(random, n), kr_hash_code(p, n));
        exact_free(p, n);
    }
}

static void test_columns(void) {
    const uint8_t *data = (const uint8_t *)"..foobar21";
    int64_t ends[] = {2, 8, 8, 10};
    kr_lent_large values = {3, ends, data, 10};
    int32_t found[3];
    int64_t sums[3];
    CHECK_INT(-1, kr_lent_out_of_bounds(&values));
    kr_murmur2_column(&values, found);
    CHECK_INT(-790332482, found[0]);
    CHECK_INT(kr_murmur2(data, 0), found[1]);
    CHECK_INT(-973932308, found[2]);
    kr_hash_code_column(&values, found);
    CHECK_INT(0, found[1]);
    CHECK_INT('2' * 31 + '1', found[2]);
    kr_crc32c_column(&values, sums);
    CHECK_INT(kr_crc32c_portable(0, data + 2, 6), sums[0]);
    CHECK_INT(0, sums[1]);
    CHECK_INT(kr_crc32c_portable(0, data + 8, 2), sums[2]);
}

static void test_ends_that_are_not_within_the_data(void) {
    int64_t falling[] = {0, 4, 3}, beyond[] = {0, 4, 11}, negative[] = {-1, 4, 5};
    const uint8_t *data = (const uint8_t *)"0123456789";
    CHECK_INT(1, kr_lent_out_of_bounds(&(kr_lent_large){2, falling, data, 10}));
    CHECK_INT(1, kr_lent_out_of_bounds(&(kr_lent_large){2, beyond, data, 10}));
    CHECK_INT(0, kr_lent_out_of_bounds(&(kr_lent_large){2, negative, data, 10}));
    CHECK_INT(-1, kr_lent_out_of_bounds(&(kr_lent_large){0, beyond, data, 10}));
}

int main(void) {
    kr_crc_init();
    test_known();
    test_bounds();
    test_columns();
    test_ends_that_are_not_within_the_data();
    return check_report("murmur2");
}
