/* record/decoder.h: batch after batch, around what is bad, into columns that are sometimes too small. */
#include "drive.h"

static drive v;
static bytes b, records;

/* Three batches; the middle one is damaged in each way and is the only one lost. */
static void test_bad_batch(void) {
    static const struct {
        int at, width;
        int64_t value;
        int sealed, status;
        int64_t expected, actual;
    } damage[] = {
        {70, 1, 0x55, 0, KR_BAD_CRC, 0, 0}, {57, 4, -2, 1, KR_BAD_RECORDS_COUNT, 0, -2},
        {57, 4, -2, 0, KR_BAD_CRC, 0, 0},   {21, 2, 5, 1, KR_UNKNOWN_COMPRESSION, 4, 5},
        {21, 2, 7, 0, KR_BAD_CRC, 0, 0},    {16, 1, -1, 0, KR_BAD_MAGIC, 2, -1},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        b.size = 0;
        put_small_batch(&b, 0, 2);
        int64_t bad = put_small_batch(&b, 2, 3);
        set_big_endian(b.at + bad + damage[i].at, damage[i].value, damage[i].width);
        if (damage[i].sealed) seal(&b, bad);
        int64_t behind = put_small_batch(&b, 5, 1);
        drive_open(&v, b.at, b.size, 100, 4096);
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(3, v.d.columns.rows);
        CHECK_INT(5, v.d.columns.offset[2]);
        CHECK_INT(1, v.d.faults_count);
        const kr_fault *f = v.d.faults;
        CHECK_STATUS(damage[i].status, f->error.status);
        CHECK_INT(-1, f->error.record_index);
        CHECK_INT(bad, f->error.position);
        CHECK_INT(bad, f->batch_position);
        CHECK_INT(behind - bad, f->skipped);
        if (damage[i].status != KR_BAD_CRC) CHECK_INT(damage[i].expected, f->error.expected);
        if (damage[i].status != KR_BAD_CRC) CHECK_INT(damage[i].actual, f->error.actual);
        CHECK_INT(-1, v.d.torn_at);
        drive_close(&v);
    }
}

/* Behind a bad length nothing is read, and a length beyond the end is a torn tail. */
static void test_bad_length(void) {
    for (int beyond = 0; beyond < 2; beyond++) {
        b.size = 0;
        int64_t bad = put_small_batch(&b, 0, 3);
        set_big_endian(b.at + bad + 8, beyond ? 1 << 20 : 10, 4);
        put_small_batch(&b, 5, 1);
        drive_open(&v, b.at, b.size, 100, 4096);
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(0, v.d.columns.rows);
        CHECK_INT(!beyond, v.d.faults_count);
        CHECK_INT(beyond ? bad : -1, v.d.torn_at);
        if (!beyond) CHECK_STATUS(KR_BAD_BATCH_LENGTH, v.d.faults[0].error.status);
        if (!beyond) CHECK_INT(KR_REST, v.d.faults[0].error.lost);
        if (!beyond) CHECK_INT(b.size, v.d.faults[0].skipped);
        drive_close(&v);
    }
}

/* Without a check of the crc its batch counts. */
static void test_crc_not_checked(void) {
    b.size = 0;
    int64_t bad = put_small_batch(&b, 7, 2);
    b.at[bad + 17] ^= 1;
    drive_open(&v, b.at, b.size, 10, 4096);
    v.d.check_crc = 0;
    CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
    CHECK_INT(2, v.d.columns.rows);
    CHECK_INT(KR_CRC_NOT_CHECKED, v.d.columns.batch[0].crc_ok);
    CHECK_INT(0, v.d.faults_count);
    drive_close(&v);
}

/* Rows, bytes and headers: a batch that does not fit waits for the next chunk, or asks for one of its own size. */
static void test_room(void) {
    static const char *const headers[] = {"h", "1", "h", "2", 0};
    records.size = b.size = 0;
    for (int i = 0; i < 3; i++) put_record(&records, 0, i, 0, 0, headers);
    for (int i = 0; i < 2; i++) put_batch(&b, 3 * i, 0, 0, 3, &records);
    int64_t one = b.size / 2;
    static const struct {
        int64_t rows, bytes, headers;
        int first, second;
    } rooms[] = {
        {6, 2, 12, KR_END, 0},
        {5, 2, 12, KR_CHUNK_FULL, KR_END},
        {6, 1, 12, KR_CHUNK_FULL, KR_END},
        {6, 2, 11, KR_CHUNK_FULL, KR_END},
        {2, 2, 12, KR_NEEDS_ROOM, KR_CHUNK_FULL},
        {6, 0, 12, KR_NEEDS_ROOM, KR_CHUNK_FULL},
        {6, 2, 5, KR_NEEDS_ROOM, KR_CHUNK_FULL},
    };
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        drive_open(&v, b.at, b.size, 1, 1);
        drive_new_room(&v, rooms[i].rows, rooms[i].bytes * one, rooms[i].headers);
        CHECK_STATUS(rooms[i].first, kr_decoder_run(&v.d));
        CHECK_INT(rooms[i].first == KR_END ? 6 : rooms[i].first == KR_CHUNK_FULL ? 3 : 0, v.d.columns.rows);
        if (rooms[i].first == KR_NEEDS_ROOM) CHECK_INT(one, v.d.needs_bytes);
        if (rooms[i].first == KR_CHUNK_FULL) v.d.needs_bytes = one;
        if (rooms[i].first != KR_END) {
            drive_grow(&v);
            CHECK_STATUS(rooms[i].second, kr_decoder_run(&v.d));
            CHECK_INT(3, v.d.columns.rows);
            CHECK_INT(rooms[i].second == KR_END ? 3 : 0, v.d.columns.offset[0]);
        }
        drive_close(&v);
    }
}

/* The smallest records there are, of which a batch holds the most, and a list of batches that is full. */
static void test_smallest_records(void) {
    records.size = b.size = 0;
    for (int i = 0; i < 60; i++) put_record(&records, i, i, 0, 0, 0);
    CHECK_INT(60 * KR_SMALLEST_RECORD, records.size);
    put_batch(&b, 0, 0, 0, 60, &records);
    for (int64_t rows = 55; rows <= 62; rows++) {
        drive_open(&v, b.at, b.size, rows, 4096);
        CHECK_STATUS(rows < 60 ? KR_NEEDS_ROOM : KR_END, kr_decoder_run(&v.d));
        CHECK_INT(rows < 60 ? 0 : 60, v.d.columns.rows);
        drive_close(&v);
    }
    b.size = 0;
    for (int i = 0; i < 3; i++) put_small_batch(&b, i, 1);
    drive_open(&v, b.at, b.size, 10, 4096);
    v.d.columns.max_batches = 2;
    CHECK_STATUS(KR_CHUNK_FULL, kr_decoder_run(&v.d));
    CHECK_INT(2, v.d.columns.batches);
    drive_close(&v);
}

/* The plain bytes of a compressed batch that says nothing true about its records: their number is bound by their size.
 */
static void test_smallest_records_decompressed(void) {
    static bytes payload;
    records.size = b.size = payload.size = 0;
    for (int i = 0; i < 200; i++) put_record(&records, 0, 0, 0, 0, 0);
    put_fill(&payload, 1, 1);
    put_batch(&b, 0, 2, 0, INT32_MAX, &payload);
    for (int64_t rows = 180; rows <= 215; rows++) {
        drive_open(&v, b.at, b.size, rows, 4096);
        CHECK_STATUS(KR_NEEDS_DECOMPRESSION, kr_decoder_run(&v.d));
        int status = drive_offer(&v, records.at, records.size);
        CHECK_TRUE(status == KR_OK || (status == KR_NEEDS_ROOM && rows <= 209));
        CHECK_INT(status == KR_OK ? 200 : 0, v.d.columns.rows);
        drive_close(&v);
    }
}

/* More faults than are kept at a time: the run stops before one would be lost. */
static void test_many_faults(void) {
    enum { BAD = 50 };
    b.size = 0;
    for (int i = 0; i < BAD; i++) {
        int64_t bad = put_small_batch(&b, i, 1);
        b.at[bad + 20] ^= 0x80;
    }
    drive_open(&v, b.at, b.size, 10, 4096);
    int faults = 0, status = KR_CHUNK_FULL;
    while (status == KR_CHUNK_FULL) {
        status = kr_decoder_run(&v.d);
        CHECK_TRUE(v.d.faults_count <= KR_MAX_FAULTS);
        for (int i = 0; i < v.d.faults_count; i++) CHECK_INT(faults + i, v.d.faults[i].base_offset);
        faults += v.d.faults_count;
        v.d.faults_count = 0;
    }
    CHECK_STATUS(KR_END, status);
    CHECK_INT(BAD, faults);
    drive_close(&v);
}

static void test_control(void) {
    for (int include = 0; include < 2; include++) {
        b.size = records.size = 0;
        put_small_batch(&b, 0, 1);
        put_hex(&records, "14 00 0100 08 00000001 01 00"); /* a COMMIT marker, its timestamp_delta in two bytes */
        put_batch(&b, 1, KR_CONTROL_BIT, -1, 1, &records);
        put_small_batch(&b, 2, 1);
        drive_open(&v, b.at, b.size, 10, 4096);
        v.d.include_control = (int8_t)include;
        CHECK_STATUS(KR_END, kr_decoder_run(&v.d));
        CHECK_INT(0, v.d.faults_count);
        CHECK_INT(2 + include, v.d.columns.rows);
        CHECK_INT(2 + include, v.d.columns.batches);
        CHECK_INT(include ? 1 : 2, v.d.columns.offset[1]);
        CHECK_INT(include ? 1 : KR_NO_CONTROL_TYPE, v.d.columns.control_type[1]);
        drive_close(&v);
    }
}

int main(void) {
    kr_crc_init();
    test_bad_batch();
    test_bad_length();
    test_crc_not_checked();
    test_room();
    test_smallest_records();
    test_smallest_records_decompressed();
    test_many_faults();
    test_control();
    return check_report("decoder");
}
