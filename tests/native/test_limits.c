/* Where 32 bits end: Arrow's ends, batch_length, and offsets beyond the last. */
#include "batch/scanner.h"
#include "drive.h"
#include "record/encoder.h"

static drive v;
static bytes b, records;

/* As if the column held so many bytes already; they are not there, and nothing reads them. */
static void pretend(kr_binary_column *c, int64_t size) {
    c->ends[0] = (int32_t)size;
    c->end = size;
    c->data -= size;
}

static void stop_pretending(kr_binary_column *c) {
    c->data += c->ends[0];
    c->ends[0] = 0;
    c->end = 0;
}

/* Header keys that are not UTF-8 grow to three times their size: a record whose keys might not be counted any more is
 * left out. */
static void test_header_keys_that_grow(void) {
    static const char *const headers[] = {"\xff\xff\xff", "", 0};
    records.size = b.size = 0;
    put_record(&records, 0, 0, "k", "v", headers);
    put_batch(&b, 7, 0, 0, 1, &records);
    for (int64_t room = 20; room > 0; room--) {
        drive_open(&v, b.at, b.size, 10, 4096);
        pretend(&v.d.columns.headers.key, INT32_MAX - room);
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(v.d.columns.rows + v.d.faults_count, 1);
        CHECK_TRUE(v.d.columns.rows == (room >= 15)); /* five bytes of headers */
        if (v.d.faults_count) CHECK_STATUS(KR_BAD_HEADER_KEY_LENGTH, v.d.faults[0].error.status);
        if (v.d.columns.rows) CHECK_INT(9, v.d.columns.headers.key.ends[1] - v.d.columns.headers.key.ends[0]);
        stop_pretending(&v.d.columns.headers.key);
        room_free(&v.d.columns);
        exact_free(v.input, v.size);
    }
}

/* A chunk is full before its ends are, whatever room its owner says there is. */
static void test_chunk_of_gigabytes(void) {
    b.size = 0;
    put_small_batch(&b, 7, 1);
    for (int64_t room = b.size + 2; room >= b.size - 2; room--) {
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.columns.max_bytes = INT64_MAX / 2;
        v.d.columns.bytes = INT32_MAX - room;
        pretend(&v.d.columns.key, INT32_MAX - room);
        CHECK_STATUS(room >= b.size ? KR_END : KR_CHUNK_FULL, kr_decoder_run(&v.d));
        CHECK_INT(room >= b.size, v.d.columns.rows);
        stop_pretending(&v.d.columns.key);
        room_free(&v.d.columns);
        exact_free(v.input, v.size);
    }
}

/* No batch holds more than 2^31 - 1 plain bytes; the bytes are not looked at. */
static void test_plain_bytes_of_gigabytes(void) {
    static bytes payload;
    b.size = payload.size = 0;
    put_fill(&payload, 1, 1);
    put_batch(&b, 7, 4, 0, 1, &payload);
    drive_open(&v, b.at, b.size, 10, 4096);
    CHECK_STATUS(KR_NEEDS_DECOMPRESSION, kr_decoder_run(&v.d));
    uint8_t *plain = room_block(KR_PADDING);
    CHECK_STATUS(KR_OK, kr_decode_decompressed(&v.d, plain, (int64_t)INT32_MAX + 1));
    CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
    CHECK_INT(1, v.d.faults_count);
    CHECK_STATUS(KR_DECOMPRESSION_LIMIT, v.d.faults[0].error.status);
    CHECK_INT(INT32_MAX, v.d.faults[0].error.expected);
    free(plain);
    drive_close(&v);
}

/* The longest batch there can be, and the guess at where the batch behind the next one stands. */
static void test_longest_batch(void) {
    kr_batch_header h = {0};
    kr_input in = kr_input_make(b.at, 100);
    h.batch_length = INT32_MAX;
    CHECK_INT((int64_t)INT32_MAX + 12, kr_batch_end(&h));
    kr_prefetch_headers(&in, &h, kr_batch_end(&h));
}

/* Offsets wrap as Java's do. */
static void test_last_offsets(void) {
    int64_t timestamp = 0;
    kr_source s = {0};
    kr_encoder w = {0};
    uint8_t *out = room_block(1000 + KR_PADDING);
    s.rows = 1;
    s.timestamp = &timestamp;
    w.base_offset = INT64_MAX;
    w.max_batch_bytes = 1000;
    w.max_batch_records = 1;
    w.batch_at = -1;
    w.out = out;
    w.capacity = 1000;
    CHECK_STATUS(KR_OK, kr_encoder_run(&w, &s));
    kr_encoder_close_batch(&w);
    CHECK_INT(INT64_MIN, w.base_offset);
    free(out);
}

int main(void) {
    kr_crc_init();
    test_header_keys_that_grow();
    test_chunk_of_gigabytes();
    test_plain_bytes_of_gigabytes();
    test_longest_batch();
    test_last_offsets();
    return check_report("limits");
}
