/* batch/scanner.h: headers alone, a few at a time. */
#include "batch/scanner.h"
#include "bytes.h"
#include "check.h"

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

/* A bad crc stops the run behind its header. A bad length ends it, or the search goes on behind it; a torn tail ends
 * it. */
static void test_faults(void) {
    b.size = 0;
    put_small_batch(&b, 0, 1);
    int64_t bad_crc = put_small_batch(&b, 1, 1), second = put_small_batch(&b, 2, 1);
    b.at[bad_crc + 70] ^= 1;
    int64_t bad_length = put_small_batch(&b, 3, 1);
    set_big_endian(b.at + bad_length + 8, 3, 4);
    int64_t last = put_small_batch(&b, 4, 1), torn = b.size;
    put_fill(&b, 0, 30);
    uint8_t *p = exact_copy(b.at, b.size);
    kr_batch_header out[9];
    int64_t count;
    for (int searches = 0; searches < 2; searches++) {
        kr_scanner s = scanner_of(p, b.size, KR_CHECK_ALL);
        kr_salvage salvage = kr_salvage_make();
        if (searches) s.input.salvage = &salvage;
        CHECK_STATUS(KR_BAD_CRC, kr_scanner_run(&s, out, 9, &count));
        CHECK_INT(2, count);
        CHECK_INT(0, out[1].crc_ok);
        CHECK_INT(bad_crc, s.fault_at);
        CHECK_INT(0, s.error.lost == KR_REST);
        CHECK_INT(second, s.position);
        CHECK_STATUS(KR_BAD_BATCH_LENGTH, kr_scanner_run(&s, out, 9, &count));
        CHECK_INT(1, count);
        CHECK_INT(bad_length, s.fault_at);
        CHECK_INT(!searches, s.error.lost == KR_REST);
        CHECK_INT(searches ? last : b.size, s.position);
        CHECK_ERROR(((kr_error){KR_BAD_BATCH_LENGTH, -1, bad_length, 49, 3, searches ? 0 : KR_REST}), &s.error);
        CHECK_STATUS(KR_END, kr_scanner_run(&s, out, 9, &count));
        CHECK_INT(searches, count);
        CHECK_INT(searches ? last : -1, salvage.salvaged_at);
        CHECK_INT(searches ? torn : -1, s.torn_at);
    }
    exact_free(p, b.size);
}

static void test_skip(void) {
    b.size = 0;
    int64_t at[6];
    for (int i = 0; i < 6; i++) at[i] = put_small_batch(&b, i, i);
    kr_scanner s = scanner_of(b.at, b.size, KR_CHECK_LENGTH);
    CHECK_INT(at[1], kr_scanner_skip(&s, 1));
    CHECK_INT(at[4], kr_scanner_skip(&s, at[3] + 1));
    CHECK_INT(at[5], kr_scanner_skip(&s, at[5]));
    CHECK_INT(-1, kr_scanner_skip(&s, at[5]));
    b.at[at[2] + 70] ^= 1; /* its length leads on */
    set_big_endian(b.at + at[4] + 8, 3, 4);
    s = scanner_of(b.at, b.size, KR_CHECK_LENGTH);
    CHECK_INT(at[3], kr_scanner_skip(&s, at[2] + 1));
    CHECK_INT(-1, kr_scanner_skip(&s, at[4]));
    CHECK_INT(-1, kr_scanner_skip(&s, 0));
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
    test_skip();
    test_range();
    return check_report("scanner");
}
