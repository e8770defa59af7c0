/* Input that is made to be read again and again must not be: the bytes summed stay in proportion to its size. */
#include "drive.h"

enum { INPUT = 1 << 20, MOST_PASSES = 100 };

static int64_t summed;

static uint32_t counting_crc(uint32_t crc, const uint8_t *p, size_t n) {
    summed += (int64_t)n;
    return n < 4096 ? kr_crc32c_portable(crc, p, n) : 0; /* what is long is bad anyway */
}

static uint8_t *input;
static int64_t size;

static void put(const bytes *b) {
    memcpy(input + size, b->at, (size_t)b->size);
    size += b->size;
}

/* A header that says its batch reaches nearly to the end of the input; then, again and again, a batch that is sound. */
static void make_input(int false_headers, int first_is_bad) {
    static bytes sound, false_one;
    sound.size = false_one.size = size = 0;
    put_small_batch(&sound, 5, 1);
    put_small_batch(&false_one, 5, 1);
    false_one.size = KR_RECORD_BATCH_OVERHEAD;
    while (size + (1 + false_headers) * KR_RECORD_BATCH_OVERHEAD + sound.size < INPUT - 100) {
        for (int i = 0; i < false_headers; i++) {
            set_big_endian(false_one.at + 8, first_is_bad && i == 0 ? 0 : INPUT - size - 100, 4);
            put(&false_one);
        }
        put(&sound);
    }
    memset(input + size, 0x55, (size_t)(INPUT - size));
}

static void check_work(int false_headers, int first_is_bad) {
    static drive v;
    make_input(false_headers, first_is_bad);
    drive_open(&v, input, INPUT, INPUT / KR_SMALLEST_RECORD, INPUT);
    kr_salvage salvage = kr_salvage_make();
    v.d.input.salvage = &salvage;
    kr_columns empty = v.d.columns;
    summed = 0;
    while (kr_decoder_run(&v.d) != KR_END && summed <= (int64_t)MOST_PASSES * INPUT) {
        v.d.faults_count = 0;
        v.d.columns = empty;
    }
    CHECK_INT(0, summed > (int64_t)MOST_PASSES * INPUT ? summed / INPUT : 0); /* passes */
    v.d.columns = empty;
    drive_close(&v);
}

int main(void) {
    kr_crc_init();
    kr_crc32c_chosen = counting_crc;
    input = room_block(INPUT);
    check_work(1, 0);  /* bad crcs, one after the other */
    check_work(1, 1);  /* bad lengths: nothing to sum */
    check_work(12, 1); /* searches that meet many false headers */
    free(input);
    return check_report("work");
}
