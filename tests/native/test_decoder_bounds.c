/* record/decoder.h: which batches are read, where reading ends, and batches that someone else decompresses. */
#include "drive.h"

static drive v;
static bytes b, records;

/* Batches wholly outside [start_offset, end_offset) are passed over; the others come out whole. */
static void test_offsets(void) {
    static const struct {
        int64_t from, to, first, rows;
    } bounds[] = {
        {INT64_MIN, INT64_MAX, 0, 9},
        {0, 9, 0, 9},
        {3, 9, 3, 6},
        {2, 3, 0, 3},
        {4, 5, 3, 3},
        {5, 7, 3, 6},
        {9, 99, 0, 0},
        {0, 0, 0, 0},
        {8, 9, 6, 3},
    };
    b.size = 0;
    for (int i = 0; i < 3; i++) put_small_batch(&b, 3 * i, 3);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.start_offset = bounds[i].from;
        v.d.end_offset = bounds[i].to;
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(bounds[i].rows, v.d.columns.rows);
        if (v.d.columns.rows) CHECK_INT(bounds[i].first, v.d.columns.offset[0]);
        drive_close(&v);
    }
}

/* A last_offset_delta below zero does not hide a batch from a reader that starts at its base offset. */
static void test_negative_last_offset(void) {
    b.size = 0;
    int64_t at = put_small_batch(&b, 10, 2);
    set_big_endian(b.at + at + 23, -5, 4);
    seal(&b, at);
    for (int64_t start = 9; start <= 11; start++) {
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.start_offset = start;
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(start <= 10 ? 2 : 0, v.d.columns.rows);
        drive_close(&v);
    }
}

/* max_timestamp of each batch is 1009; -1 says nothing about a batch. */
static void test_timestamps(void) {
    for (int unknown = 0; unknown < 2; unknown++) {
        b.size = 0;
        int64_t at = put_small_batch(&b, 0, 1);
        set_big_endian(b.at + at + 35, unknown ? -1 : 1009, 8);
        seal(&b, at);
        for (int64_t start = 1008; start < 1011; start++) {
            drive_open(&v, b.at, b.size, 10, 4096);
            v.d.start_timestamp = start;
            CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
            CHECK_INT(unknown || start <= 1009, v.d.columns.rows);
            drive_close(&v);
        }
    }
}

/* A batch that starts before `end` is read to its own end, one that starts there is not. */
static void test_range(void) {
    b.size = 0;
    put_small_batch(&b, 0, 1);
    int64_t second = put_small_batch(&b, 1, 1), third = put_small_batch(&b, 2, 1);
    for (int64_t end = second - 1; end <= third + 1; end++) {
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.end = end;
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(end <= second ? 1 : end <= third ? 2 : 3, v.d.columns.rows);
        drive_close(&v);
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.position = end <= second ? second : third;
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(end <= second ? 2 : 1, v.d.columns.rows);
        drive_close(&v);
    }
}

static void test_every_truncation(void) {
    b.size = 0;
    put_small_batch(&b, 0, 2);
    int64_t second = put_small_batch(&b, 2, 2);
    for (int64_t size = 0; size <= b.size; size++) {
        drive_open(&v, b.at, size, 10, 4096);
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(size < second ? 0 : size < b.size ? 2 : 4, v.d.columns.rows);
        CHECK_INT(0, v.d.faults_count);
        CHECK_INT(size == 0 || size == second || size == b.size ? -1 : size < second ? 0 : second, v.d.torn_at);
        drive_close(&v);
    }
}

/* Opens a compressed batch of three records between two others, and stops where its payload is due. */
static void open_compressed(int attributes) {
    static bytes payload;
    b.size = records.size = payload.size = 0;
    for (int i = 0; i < 3; i++) put_record(&records, 0, i, "k", "v", 0);
    put_hex(&payload, "c0ffee");
    put_small_batch(&b, 0, 1);
    int64_t at = put_batch(&b, 1, attributes, 0, 3, &payload);
    put_small_batch(&b, 4, 1);
    drive_open(&v, b.at, b.size, 10, 4096);
    CHECK_STATUS(KR_NEEDS_DECOMPRESSION, kr_decoder_run(&v.d));
    CHECK_BYTES(payload.at, 3, v.d.payload, v.d.payload_size);
    CHECK_INT(at, v.d.position);
    CHECK_INT(at, v.d.batch.position);
    CHECK_INT(1, v.d.batch.crc_ok);
}

static void test_decompressed(void) {
    for (int codec = 1; codec <= KR_LAST_COMPRESSION; codec++) {
        open_compressed(codec);
        CHECK_INT(codec, kr_compression(&v.d.batch));
        CHECK_STATUS(KR_OK, drive_offer(&v, records.at, records.size));
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(5, v.d.columns.rows);
        for (int i = 0; i < 5; i++) CHECK_INT(i, v.d.columns.offset[i]);
        CHECK_INT(0, v.d.faults_count);
        drive_close(&v);
    }
}

static void test_decompression_failed(void) {
    open_compressed(1);
    int64_t at = v.d.position, size = kr_batch_end(&v.d.batch) - at;
    kr_decompression_failed(&v.d, KR_DECOMPRESSION_LIMIT, 1234);
    CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
    CHECK_INT(2, v.d.columns.rows);
    CHECK_INT(1, v.d.faults_count);
    CHECK_ERROR(((kr_error){KR_DECOMPRESSION_LIMIT, -1, at, 1234, -1, 0}), &v.d.faults[0].error);
    CHECK_INT(at, v.d.faults[0].batch_position);
    CHECK_INT(1, v.d.faults[0].base_offset);
    CHECK_INT(size, v.d.faults[0].skipped);
    drive_close(&v);
}

/* Plain bytes that are bad: positions count from their start, and the batch's own place is known as well. */
static void test_bad_plain_bytes(void) {
    open_compressed(2);
    int64_t at = v.d.position;
    CHECK_STATUS(KR_OK, drive_offer(&v, records.at, records.size - 1));
    CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
    CHECK_INT(4, v.d.columns.rows);
    int64_t one = records.size / 3;
    CHECK_ERROR(((kr_error){KR_BAD_RECORD_LENGTH, 2, 2 * one + 1, one - 2, one - 1, one - 1}), &v.d.faults[0].error);
    CHECK_INT(at, v.d.faults[0].batch_position);
    drive_close(&v);
}

/* Plain bytes can be far more than the compressed ones: they wait for a chunk with room. */
static void test_plain_bytes_need_room(void) {
    open_compressed(3);
    drive_new_room(&v, 10, 61, 20);
    CHECK_STATUS(KR_NEEDS_ROOM, drive_offer(&v, records.at, records.size));
    CHECK_INT(61 + records.size, v.d.needs_bytes);
    drive_grow(&v);
    CHECK_STATUS(KR_OK, drive_offer(&v, records.at, records.size));
    CHECK_INT(3, v.d.columns.rows);
    CHECK_STATUS(KR_CHUNK_FULL, kr_decoder_run(&v.d));
    drive_close(&v);
}

int main(void) {
    kr_crc_init();
    test_offsets();
    test_negative_last_offset();
    test_timestamps();
    test_range();
    test_every_truncation();
    test_decompressed();
    test_decompression_failed();
    test_bad_plain_bytes();
    test_plain_bytes_need_room();
    return check_report("decoder_bounds");
}
