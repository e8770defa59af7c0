/* scanner.h: headers alone, a few at a time. */
#include "bytes.h"
#include "check.h"
#include "scanner.h"

static bytes b;

static kr_scanner scanner_of(uint8_t *p, int64_t size, int check) {
    kr_scanner s;
    memset(&s, 0, sizeof s);
    s.input = kr_input_make(p, size);
    s.end = size;
    s.check = (int8_t)check;
    s.torn_at = -1;
    return s;
}

static void test_some_at_a_time(void) {
    b.size = 0;
    for (int i = 0; i < 7; i++) put_small_batch(&b, i, 1);
    for (int64_t max = 1; max <= 8; max++) {
        uint8_t *p = exact_copy(b.at, b.size);
        kr_scanner s = scanner_of(p, b.size, (int)max & 1);
        kr_batch_header out[8];
        int64_t count = 0, seen = 0;
        int status;
        do {
            status = kr_scanner_run(&s, out, max, &count);
            CHECK_TRUE(count <= max);
            for (int64_t i = 0; i < count; i++) {
                CHECK_INT(seen + i, out[i].base_offset);
                CHECK_INT(max & 1 ? 1 : KR_CRC_NOT_CHECKED, out[i].crc_ok);
            }
            seen += count;
        } while (status == KR_CHUNK_FULL);
        CHECK_STATUS(KR_END, status);
        CHECK_INT(7, seen);
        CHECK_INT(-1, s.torn_at);
        exact_free(p, b.size);
    }
}

/* A bad crc stops the run behind its header; a bad length before the next sound batch; a torn tail ends it. */
static void test_faults(void) {
    b.size = 0;
    put_small_batch(&b, 0, 1);
    int64_t bad_crc = put_small_batch(&b, 1, 1);
    b.at[bad_crc + 70] ^= 1;
    int64_t bad_length = put_small_batch(&b, 2, 1);
    set_big_endian(b.at + bad_length + 8, 3, 4);
    int64_t last = put_small_batch(&b, 3, 1), torn = b.size;
    put_fill(&b, 0, 30);
    uint8_t *p = exact_copy(b.at, b.size);
    kr_scanner s = scanner_of(p, b.size, 1);
    kr_batch_header out[9];
    int64_t count;
    CHECK_STATUS(KR_BAD_CRC, kr_scanner_run(&s, out, 9, &count));
    CHECK_INT(2, count);
    CHECK_INT(0, out[1].crc_ok);
    CHECK_INT(bad_crc, s.fault_at);
    CHECK_INT(last, s.position); /* no header stands behind the bad batch: the next sound one does */
    CHECK_STATUS(KR_END, kr_scanner_run(&s, out, 9, &count));
    CHECK_INT(1, count);
    CHECK_INT(3, out[0].base_offset);
    CHECK_INT(torn, s.torn_at);
    s = scanner_of(p, b.size, 0);
    CHECK_STATUS(KR_BAD_BATCH_LENGTH, kr_scanner_run(&s, out, 9, &count));
    CHECK_INT(2, count);
    CHECK_INT(bad_length, s.fault_at);
    CHECK_INT(last, s.position);
    CHECK_ERROR(((kr_error){KR_BAD_BATCH_LENGTH, -1, bad_length, 49, 3, 0}), &s.error);
    CHECK_STATUS(KR_END, kr_scanner_run(&s, out, 9, &count));
    CHECK_INT(1, count);
    exact_free(p, b.size);
}

static void test_range(void) {
    b.size = 0;
    put_small_batch(&b, 0, 1);
    int64_t second = put_small_batch(&b, 1, 1), third = put_small_batch(&b, 2, 1), count;
    kr_batch_header out[4];
    kr_scanner s = scanner_of(b.at, b.size, 1);
    s.position = second;
    s.end = third;
    CHECK_STATUS(KR_END, kr_scanner_run(&s, out, 4, &count));
    CHECK_INT(1, count);
    CHECK_INT(second, out[0].position);
    CHECK_STATUS(KR_END, kr_scanner_run(&s, out, 4, &count));
    CHECK_INT(0, count);
}

int main(void) {
    kr_crc_init();
    test_some_at_a_time();
    test_faults();
    test_range();
    return check_report("scanner");
}
