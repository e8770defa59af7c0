/* base/reader.h: no read passes the end, and the first failure stays. */
#include "base/reader.h"
#include "bytes.h"
#include "check.h"

/* Each kind of read, and the bytes it takes. */
typedef void read_function(kr_reader *in);

static void read_int8(kr_reader *in) { kr_read_int8(in); }
static void read_int32(kr_reader *in) { kr_read_int32(in); }
static void read_int64(kr_reader *in) { kr_read_int64(in); }

static void test_fixed_widths(void) {
    static const struct {
        read_function *read;
        int64_t width;
    } reads[] = {{read_int8, 1}, {read_int32, 4}, {read_int64, 8}};
    uint8_t zeros[8] = {0};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        for (int64_t size = 0; size <= reads[i].width; size++) {
            uint8_t *p = exact_copy(zeros, size);
            kr_reader in = kr_reader_make(p, p, p + size);
            reads[i].read(&in);
            kr_error cut = {KR_TRUNCATED_FIELD, -1, 0, reads[i].width, size, 0};
            kr_error none = {KR_OK, -1, 0, 0, 0, 0};
            CHECK_ERROR(size < reads[i].width ? cut : none, &in.error);
            CHECK_INT(0, kr_left(&in));
            exact_free(p, size);
        }
    }
}

static void test_values(void) {
    static bytes b;
    put_hex(&b, "80 fffffffe 7fffffff fffffffffffffffd 0102030405060708");
    kr_reader in = kr_reader_make(b.at, b.at, b.at + b.size);
    CHECK_INT(-128, kr_read_int8(&in));
    CHECK_INT(-2, kr_read_int32(&in));
    CHECK_INT(INT32_MAX, kr_read_int32(&in));
    CHECK_INT(-3, kr_read_int64(&in));
    CHECK_INT(0x0102030405060708, kr_read_int64(&in));
    CHECK_STATUS(KR_OK, in.error.status);
}

/* Later reads give zeros and do not move the position of the first failure. */
static void test_first_failure_stays(void) {
    static bytes b;
    put_hex(&b, "00000001 0002 ffffff");
    uint8_t *p = exact_copy(b.at, b.size);
    kr_reader in = kr_reader_make(p, p + 4, p + b.size);
    int32_t length = 7;
    CHECK_INT(0, kr_read_int64(&in));
    kr_error first = {KR_TRUNCATED_FIELD, -1, 4, 8, 5, 0};
    CHECK_ERROR(first, &in.error);
    CHECK_INT(0, kr_left(&in));
    CHECK_INT(0, kr_read_int8(&in));
    CHECK_INT(0, kr_read_int32(&in));
    CHECK_INT(0, kr_read_varint(&in));
    CHECK_INT(0, kr_read_varlong(&in));
    CHECK_TRUE(kr_take(&in, 0) == 0);
    CHECK_TRUE(kr_take_or(&in, -1, KR_BAD_KEY_LENGTH) == 0);
    CHECK_TRUE(kr_read_nullable(&in, &length, KR_BAD_VALUE_LENGTH) == 0);
    CHECK_INT(-1, length);
    kr_reader_fail(&in, KR_BAD_CRC, 1, 2);
    CHECK_ERROR(first, &in.error);
    exact_free(p, b.size);
}

/* A length is compared with the bytes left: never added to a pointer first, never taken below zero. */
static void test_take(void) {
    uint8_t *p = exact_copy((const uint8_t *)"abcdef", 6);
    static const int64_t lengths[] = {-1, INT64_MIN, 7, INT32_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        kr_reader in = kr_reader_make(p, p, p + 6);
        CHECK_TRUE(kr_take(&in, lengths[i]) == 0);
        CHECK_ERROR(((kr_error){KR_TRUNCATED_FIELD, -1, 0, lengths[i], 6, 0}), &in.error);
        in = kr_reader_make(p, p + 2, p + 6);
        CHECK_TRUE(kr_take_or(&in, lengths[i], KR_BAD_KEY_LENGTH) == 0);
        CHECK_ERROR(((kr_error){KR_BAD_KEY_LENGTH, -1, 2, 4, lengths[i], 0}), &in.error);
    }
    kr_reader in = kr_reader_make(p, p, p + 6);
    CHECK_INT(0, kr_take(&in, 6) - p);
    CHECK_INT(6, kr_take(&in, 0) - p);
    CHECK_STATUS(KR_OK, in.error.status);
    exact_free(p, 6);
}

static void test_nullable(void) {
    static bytes b;
    int32_t length;
    put_hex(&b, "01 07 00 04 6162 06 63");
    kr_reader in = kr_reader_make(b.at, b.at, b.at + b.size);
    CHECK_TRUE(kr_read_nullable(&in, &length, KR_BAD_KEY_LENGTH) == 0);
    CHECK_INT(-1, length);
    CHECK_TRUE(kr_read_nullable(&in, &length, KR_BAD_KEY_LENGTH) == 0); /* -4 is null as well */
    CHECK_INT(-1, length);
    CHECK_INT(3, kr_read_nullable(&in, &length, KR_BAD_KEY_LENGTH) - b.at);
    CHECK_INT(0, length);
    CHECK_INT(4, kr_read_nullable(&in, &length, KR_BAD_KEY_LENGTH) - b.at);
    CHECK_INT(2, length);
    CHECK_STATUS(KR_OK, in.error.status);
    CHECK_TRUE(kr_read_nullable(&in, &length, KR_BAD_KEY_LENGTH) == 0);
    CHECK_ERROR(((kr_error){KR_BAD_KEY_LENGTH, -1, 7, 1, 3, 0}), &in.error);
}

int main(void) {
    test_fixed_widths();
    test_values();
    test_first_failure_stays();
    test_take();
    test_nullable();
    return check_report("reader");
}
