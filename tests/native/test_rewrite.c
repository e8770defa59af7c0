/* record/rewrite.h: cut or damaged batches are refused before anything is changed, and nothing beyond the buffer is
 * touched.
 */
#include "bytes.h"
#include "check.h"
#include "record/rewrite.h"
#include "room.h"

enum { ROWS = 7, ROOM = 1024 };

/* Batches of two records, as the encoder makes them. */
static int64_t make(uint8_t *out) {
    static const int32_t ends[ROWS + 1] = {0, 3, 6, 9, 12, 15, 18, 21};
    static const uint8_t data[3 * ROWS] = {0};
    kr_source s = {0};
    kr_encoder w = {0};
    s.rows = ROWS;
    s.value = (kr_lent_binary){ends, data, sizeof data, 0, 0};
    w.max_batch_bytes = ROOM;
    w.max_batch_records = 2;
    w.batch_at = -1;
    w.out = out;
    w.capacity = ROOM - KR_PADDING;
    CHECK_STATUS(KR_OK, kr_encoder_run(&w, &s));
    kr_encoder_close_batch(&w);
    return w.written;
}

static int change(uint8_t *p, int64_t size, int reseals, int64_t *next_offset) {
    kr_changes c = {1, 1, (int8_t)reseals, (int8_t)reseals, 1, 6, 40, 99};
    kr_input in = kr_input_make(p, size);
    kr_batch_header h;
    kr_error e;
    int status = kr_changes_check(&in, &c, &h, next_offset, &e);
    if (status == KR_OK) kr_changes_apply(p, size, &c);
    return status;
}

static void test_every_cut(void) {
    uint8_t whole[ROOM];
    int64_t size = make(whole), next_offset, one = KR_LOG_OVERHEAD + kr_load_int32(whole + KR_LENGTH_AT);
    for (int64_t cut = 0; cut <= size; cut++)
        for (int reseals = 0; reseals < 2; reseals++) {
            uint8_t *p = exact_copy(whole, cut);
            int is_whole = cut % one == 0 || cut == size;
            CHECK_STATUS(is_whole ? KR_OK : KR_TORN_TAIL, change(p, cut, reseals, &next_offset));
            if (is_whole) CHECK_INT(40 + (cut == size ? ROWS : 2 * (cut / one)), next_offset);
            if (!is_whole) CHECK_BYTES(whole, cut, p, cut);
            exact_free(p, cut);
        }
}

/* Whatever bit is flipped: a batch that is sealed again was sound, and its neighbours stay apart. */
static void test_every_flip(void) {
    uint8_t whole[ROOM];
    int64_t size = make(whole), next_offset;
    for (int64_t bit = 0; bit < 8 * size; bit++)
        for (int reseals = 0; reseals < 2; reseals++) {
            uint8_t *p = exact_copy(whole, size);
            p[bit / 8] ^= (uint8_t)(1 << bit % 8);
            uint8_t *before = exact_copy(p, size);
            if (change(p, size, reseals, &next_offset) != KR_OK) CHECK_BYTES(before, size, p, size);
            exact_free(before, size);
            exact_free(p, size);
        }
}

/* Offsets that are to stay as they are do not count from the one that would be set. */
static void test_base_offset_that_is_not_set(void) {
    uint8_t p[ROOM], whole[ROOM];
    int64_t size = make(whole), next_offset;
    kr_changes c = {0, 0, 0, 0, 0, 0, INT64_MAX, 0};
    kr_input in = kr_input_make(p, size);
    kr_batch_header h;
    kr_error e;
    memcpy(p, whole, (size_t)size);
    CHECK_STATUS(KR_OK, kr_changes_check(&in, &c, &h, &next_offset, &e));
    CHECK_INT(ROWS, next_offset);
    kr_changes_apply(p, size, &c);
    CHECK_BYTES(whole, size, p, size);
}

int main(void) {
    kr_crc_init();
    test_every_cut();
    test_every_flip();
    test_base_offset_that_is_not_set();
    return check_report("rewrite");
}
