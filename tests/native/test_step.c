/* batch/step.h and batch/salvage.h: where a walk goes on behind damage, where it ends, and what a search finds there.
 */
#include <time.h>

#include "batch/step.h"
#include "bytes.h"
#include "check.h"

/* One step over bytes in a block that ends where they end. */
static int step(const bytes *b, int64_t position, kr_error *e, int64_t *next) {
    kr_batch_header h;
    uint8_t *p = exact_copy(b->at, b->size);
    kr_input in = kr_input_make(p, b->size);
    int status = kr_batch_next(&in, position, KR_CHECK_LENGTH, &h, e, next);
    exact_free(p, b->size);
    return status;
}

static void test_sound(void) {
    static bytes b;
    int64_t first = put_small_batch(&b, 0, 2), second = put_message(&b, 1, 2, 0, 0, 0, -1, "v", 1),
            third = put_message(&b, 0, 3, 0, 0, 0, -1, "v", 1), fourth = put_small_batch(&b, 4, 0), next;
    kr_error e;
    CHECK_STATUS(KR_OK, step(&b, first, &e, &next));
    CHECK_INT(second, next);
    CHECK_STATUS(KR_OK, step(&b, second, &e, &next));
    CHECK_INT(third, next);
    CHECK_STATUS(KR_OK, step(&b, third, &e, &next));
    CHECK_INT(fourth, next);
    CHECK_STATUS(KR_OK, step(&b, fourth, &e, &next));
    CHECK_INT(b.size, next);
    CHECK_STATUS(KR_END, step(&b, b.size, &e, &next));
}

static void test_torn_tail(void) {
    static bytes b;
    kr_error e;
    int64_t next, second;
    put_small_batch(&b, 0, 1);
    second = put_small_batch(&b, 1, 1);
    for (int64_t whole = b.size; b.size > second + 1;) {
        b.size--;
        CHECK_STATUS(KR_TORN_TAIL, step(&b, second, &e, &next));
        CHECK_ERROR(((kr_error){KR_TORN_TAIL, -1, second, 0, b.size - second, 0}), &e);
        CHECK_INT(b.size, next);
        CHECK_TRUE(b.size < whole);
    }
}

/* A segment that is written to while it is read: the first bytes of a header stand there, zeros behind them. */
static void test_begun_header(void) {
    static bytes b;
    kr_error e;
    int64_t next;
    put_small_batch(&b, 0, 1);
    int64_t end = b.size;
    for (int64_t begun = 1; begun <= KR_LENGTH_AT; begun++) {
        b.size = end;
        put_fill(&b, 1, begun);
        put_fill(&b, 0, 300);
        CHECK_STATUS(KR_TORN_TAIL, step(&b, end, &e, &next));
        CHECK_INT(b.size, next);
        b.at[b.size - 1] = 1; /* not zero to the end */
        CHECK_STATUS(KR_BAD_BATCH_LENGTH, step(&b, end, &e, &next));
        CHECK_INT(1, e.lost == KR_REST);
        b.size = end + begun + 100;
        put_small_batch(&b, 1, 1); /* a sound batch behind it: not searched for */
        CHECK_STATUS(KR_BAD_BATCH_LENGTH, step(&b, end, &e, &next));
        CHECK_INT(b.size, next);
    }
    b.size = end;
    int64_t begun = put_small_batch(&b, 1, 1); /* half of its length, which then leads to another place */
    memset(b.at + begun + KR_LENGTH_AT + 3, 0, (size_t)(b.size - begun - KR_LENGTH_AT - 3));
    b.at[begun + KR_LENGTH_AT + 2] = 1;
    put_fill(&b, 0, 1000);
    CHECK_STATUS(KR_TORN_TAIL, step(&b, begun, &e, &next));
}

static void test_offset_overflow(void) {
    static bytes b;
    kr_error e;
    int64_t next;
    int64_t first = put_small_batch(&b, INT64_MAX - 5, 5), second = b.size;
    put_small_batch(&b, 7, 1);
    CHECK_STATUS(KR_OK, step(&b, first, &e, &next));
    b.size = 0;
    first = put_small_batch(&b, INT64_MAX - 5, 6), second = b.size;
    put_small_batch(&b, 7, 1);
    CHECK_STATUS(KR_OFFSET_OVERFLOW, step(&b, first, &e, &next));
    CHECK_INT(INT64_MAX - 5, e.actual);
    CHECK_INT(second, next);
}

static void test_zero_tail(void) {
    static bytes b;
    kr_error e;
    int64_t next;
    put_small_batch(&b, 0, 1);
    int64_t end = b.size;
    for (int64_t zeros = 1; zeros < 300; zeros += zeros < 70 ? 1 : 50) {
        b.size = end;
        put_fill(&b, 0, zeros);
        CHECK_STATUS(KR_TORN_TAIL, step(&b, end, &e, &next));
        CHECK_INT(zeros, e.actual);
        CHECK_INT(b.size, next);
    }
    b.at[b.size - 1] = 1; /* zeros up to the last byte: not what a preallocated file looks like */
    CHECK_STATUS(KR_BAD_BATCH_LENGTH, step(&b, end, &e, &next));
    CHECK_INT(b.size, next);
}

/* A bad length, magic or tail before a sound batch: the walk ends there, and a search finds the sound one. */
static void test_salvage(void) {
    static const struct {
        int at, width;
        int64_t value;
        int status;
        int64_t expected, actual;
    } damage[] = {
        {8, 4, 0, KR_BAD_BATCH_LENGTH, 49, 0},          {8, 4, -5, KR_BAD_BATCH_LENGTH, 49, -5},
        {8, 4, 48, KR_BAD_BATCH_LENGTH, 49, 48},        {8, 4, 1 << 20, KR_TORN_TAIL, 49, 1 << 20},
        {8, 4, INT32_MAX, KR_TORN_TAIL, 49, INT32_MAX}, {16, 1, -1, KR_BAD_MAGIC, 2, -1},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        for (int garbage = 1; garbage < 40; garbage += 13) {
            static bytes b;
            kr_error e;
            kr_batch_header h;
            int64_t next;
            b.size = 0;
            int64_t bad = put_small_batch(&b, 0, 3);
            set_big_endian(b.at + bad + damage[i].at, damage[i].value, damage[i].width);
            put_fill(&b, 0x5a, garbage);
            int64_t sound = i % 2 ? put_small_batch(&b, 3, 2) : put_message(&b, 1, 3, 0, 5, "k", 1, "v", 1);
            CHECK_STATUS(damage[i].status, step(&b, bad, &e, &next));
            CHECK_INT(b.size, next);
            CHECK_INT(damage[i].status != KR_TORN_TAIL, e.lost == KR_REST);
            kr_input in = kr_input_make(b.at, b.size);
            kr_salvage salvage = kr_salvage_make();
            in.salvage = &salvage;
            int status = damage[i].status == KR_TORN_TAIL ? KR_BAD_BATCH_LENGTH : damage[i].status;
            CHECK_STATUS(status, kr_batch_next(&in, bad, KR_CHECK_LENGTH, &h, &e, &next));
            CHECK_ERROR(((kr_error){status, -1, bad, damage[i].expected, damage[i].actual, 0}), &e);
            CHECK_INT(sound, next);
            CHECK_INT(sound, salvage.salvaged_at);
        }
    }
}

/* kr_find_batch passes over what only looks like a batch, and remembers what it has learnt. */
static void test_find(void) {
    static bytes b;
    put_fill(&b, 0, 33);
    int64_t false_one = put_small_batch(&b, 0, 1);
    b.at[false_one + 70] ^= 1; /* its crc does not match */
    int64_t odd_one = put_small_batch(&b, 1, 1);
    set_big_endian(b.at + odd_one, -1, 8); /* base_offset: plausible to no one, though the crc does not cover it */
    static const struct {
        int at, width;
        int64_t value;
    } odd[] = {{16, 1, 3}, {21, 2, 0x80}, {21, 2, 5}, {23, 4, -1}, {57, 4, -1}};
    for (int i = 0; i < 5; i++) { /* whole batches, crc and all, that no broker writes */
        int64_t at = put_small_batch(&b, 1, 1);
        set_big_endian(b.at + at + odd[i].at, odd[i].value, odd[i].width);
        seal(&b, at);
    }
    int64_t sound = put_small_batch(&b, 2, 1), last = put_small_batch(&b, 3, 1);
    kr_input in = kr_input_make(b.at, b.size);
    kr_salvage salvage = kr_salvage_make();
    in.salvage = &salvage;
    CHECK_INT(sound, kr_find_batch(&in, 0));
    CHECK_INT(0, salvage.from);
    CHECK_INT(sound, salvage.found);
    CHECK_INT(sound, kr_find_batch(&in, false_one));
    CHECK_INT(sound, kr_find_batch(&in, sound));
    CHECK_INT(last, kr_find_batch(&in, sound + 1));
    CHECK_INT(b.size, kr_find_batch(&in, last + 1));
    CHECK_INT(b.size, kr_find_batch(&in, b.size));
}

static int behind(kr_input *in, const kr_batch_header *h, int64_t *next) {
    kr_error e;
    kr_fail(&e, KR_BAD_CRC, h->position, 0, 0);
    CHECK_STATUS(KR_BAD_CRC, kr_give_up_batch(in, h, &e, next));
    return e.lost == KR_REST;
}

/* Behind a batch with a bad crc its length is believed when a header follows there, the input ends, or is zero. */
static void test_behind_bad_batch(void) {
    static bytes b;
    kr_batch_header h;
    kr_error e;
    int64_t next;
    int64_t bad = put_small_batch(&b, 10, 2), second = put_small_batch(&b, 12, 1), third = put_small_batch(&b, 13, 1);
    kr_input in = kr_input_make(b.at, b.size);
    CHECK_STATUS(KR_OK, kr_header_read(&in, bad, &h, &e));
    CHECK_INT(0, behind(&in, &h, &next));
    CHECK_INT(second, next);
    h.batch_length += 3;
    CHECK_INT(1, behind(&in, &h, &next));
    CHECK_INT(b.size, next);
    h.batch_length = (int32_t)(third - KR_LOG_OVERHEAD);
    CHECK_INT(0, behind(&in, &h, &next));
    CHECK_INT(third, next);
    h.base_offset = 1 << 20; /* its own offset is what is damaged: a sound batch is believed */
    CHECK_INT(0, behind(&in, &h, &next));
    b.at[b.size - 1] ^= 1; /* and one that is not sound is not */
    CHECK_INT(1, behind(&in, &h, &next));
    CHECK_STATUS(KR_OK, kr_header_read(&in, third, &h, &e));
    CHECK_INT(0, behind(&in, &h, &next));
    CHECK_INT(b.size, next);
    put_fill(&b, 0, 300);
    in = kr_input_make(b.at, b.size);
    CHECK_INT(0, behind(&in, &h, &next));
    b.at[b.size - 1] = 1;
    CHECK_INT(1, behind(&in, &h, &next));
}

int main(void) {
    kr_crc_init();
    test_sound();
    test_torn_tail();
    test_begun_header();
    test_offset_overflow();
    test_zero_tail();
    test_salvage();
    test_find();
    test_behind_bad_batch();
    return check_report("step");
}
