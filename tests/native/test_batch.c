/* batch/batch.h: headers, the step from one batch to the next, and finding the next sound one after damage. */
#include "batch/batch.h"
#include "bytes.h"
#include "check.h"

static int read_header(const bytes *b, int64_t size, int64_t position, kr_batch_header *h, kr_error *e) {
    uint8_t *p = exact_copy(b->at, size);
    kr_input in = kr_input_make(p, size);
    int status = kr_header_read(&in, position, h, e);
    exact_free(p, size);
    return status;
}

static void test_header(void) {
    static bytes b;
    kr_batch_header h;
    kr_error e;
    put_small_batch(&b, 42, 3);
    CHECK_STATUS(KR_OK, read_header(&b, b.size, 0, &h, &e));
    CHECK_INT(0, h.position);
    CHECK_INT(42, h.base_offset);
    CHECK_INT(b.size - KR_LOG_OVERHEAD, h.batch_length);
    CHECK_INT(5, h.partition_leader_epoch);
    CHECK_INT(2, h.magic);
    CHECK_INT(0, h.attributes);
    CHECK_INT(2, h.last_offset_delta);
    CHECK_INT(44, kr_last_offset(&h));
    CHECK_INT(1000, h.base_timestamp);
    CHECK_INT(1009, h.max_timestamp);
    CHECK_INT(77, h.producer_id);
    CHECK_INT(3, h.producer_epoch);
    CHECK_INT(11, h.base_sequence);
    CHECK_INT(3, h.records_count);
    CHECK_INT(KR_CRC_NOT_CHECKED, h.crc_ok);
    CHECK_INT(KR_NO_CONTROL_TYPE, h.control_type);
    CHECK_INT(b.size, kr_batch_end(&h));
    kr_input in = kr_input_make(b.at, b.size);
    CHECK_INT(h.crc, kr_batch_crc(&in, &h));
}

static void test_legacy_header(void) {
    static bytes b;
    kr_batch_header h;
    kr_error e;
    for (int magic = 0; magic < 2; magic++) {
        int64_t at = put_message(&b, magic, 9, magic ? 0x08 : 0x02, 1234, "k", 1, "v", 1);
        CHECK_STATUS(KR_OK, read_header(&b, b.size, at, &h, &e));
        CHECK_INT(magic, h.magic);
        CHECK_INT(9, h.base_offset);
        CHECK_INT(magic ? 0x08 : 0x02, h.attributes);
        CHECK_INT(magic ? 1234 : -1, h.base_timestamp);
        CHECK_INT(h.base_timestamp, h.max_timestamp);
        CHECK_INT(magic ? 1 : -1, h.records_count); /* a wrapper's is not known */
        CHECK_INT(-1, h.producer_id);
        CHECK_INT(-1, h.producer_epoch);
        CHECK_INT(-1, h.base_sequence);
        CHECK_INT(-1, h.partition_leader_epoch);
        CHECK_INT(0, h.last_offset_delta);
        kr_input in = kr_input_make(b.at, b.size);
        CHECK_INT(h.crc, kr_batch_crc(&in, &h));
    }
}

/* Whatever is cut off is a torn tail, and nothing behind the cut is read. */
static void test_every_cut(void) {
    static bytes b;
    kr_batch_header h;
    kr_error e;
    put_small_batch(&b, 0, 1);
    for (int64_t size = 0; size < b.size; size++) {
        CHECK_STATUS(size ? KR_TORN_TAIL : KR_END, read_header(&b, size, 0, &h, &e));
        if (size) CHECK_INT(0, e.position);
    }
    static const int magics[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        b.size = 0;
        put_message(&b, magics[i], 0, 0, 0, 0, -1, 0, -1);
        CHECK_STATUS(KR_OK, read_header(&b, b.size, 0, &h, &e));
        CHECK_STATUS(KR_TORN_TAIL, read_header(&b, b.size - 1, 0, &h, &e));
    }
}

/* The least batch_length of each magic, one less than it, and what a signed length can be. */
static void test_batch_length(void) {
    static const struct {
        int magic;
        int32_t least;
    } leasts[] = {{0, 14}, {1, 22}, {2, 49}, {3, 49}, {127, 49}};
    kr_batch_header h;
    kr_error e;
    for (size_t i = 0; i < sizeof leasts / sizeof *leasts; i++) {
        static bytes b;
        b.size = 0;
        put_fill(&b, 0, 200);
        b.at[16] = (uint8_t)leasts[i].magic;
        set_big_endian(b.at + 8, leasts[i].least, 4);
        CHECK_STATUS(KR_OK, read_header(&b, b.size, 0, &h, &e));
        const int64_t bad[] = {leasts[i].least - 1, 0, -1, INT32_MIN};
        for (int k = 0; k < 4; k++) {
            set_big_endian(b.at + 8, bad[k], 4);
            CHECK_STATUS(KR_BAD_BATCH_LENGTH, read_header(&b, b.size, 0, &h, &e));
            CHECK_ERROR(((kr_error){KR_BAD_BATCH_LENGTH, -1, 0, leasts[i].least, bad[k], 0}), &e);
        }
        set_big_endian(b.at + 8, INT32_MAX, 4);
        CHECK_STATUS(KR_TORN_TAIL, read_header(&b, b.size, 0, &h, &e));
    }
    static bytes b;
    put_small_batch(&b, 0, 1);
    b.at[16] = 0xff;
    CHECK_STATUS(KR_BAD_MAGIC, read_header(&b, b.size, 0, &h, &e));
    CHECK_ERROR(((kr_error){KR_BAD_MAGIC, -1, 0, 2, -1, 0}), &e);
}

static void put_control(bytes *b, int attributes, int16_t type, int64_t key_size, int64_t more) {
    static bytes fields, records;
    fields.size = records.size = 0;
    put_hex(&fields, "00 00 00");
    put_varint(&fields, key_size);
    put_int(&fields, 0, 2);
    put_int(&fields, type, 2);
    put_fill(&fields, 0, more);
    put_record_of(&records, &fields);
    put_batch(b, 0, attributes, 0, 1, &records);
}

static void test_control_type(void) {
    static const struct {
        int attributes, type, key_size, found;
    } cases[] = {
        {0x20, 0, 4, 0},  {0x20, 1, 4, 1},  {0x30, 6, 4, 6},  {0x20, -2, 4, -2},
        {0x00, 1, 4, -1}, {0x21, 1, 4, -1}, {0x20, 1, 3, -1}, {0x20, 1, -1, -1},
    };
    kr_batch_header h;
    kr_error e;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        static bytes b;
        b.size = 0;
        put_control(&b, cases[i / 4].attributes, (int16_t)cases[i / 4].type, cases[i / 4].key_size,
                    2 + 10 * (int64_t)(i % 4));
        CHECK_STATUS(KR_OK, read_header(&b, b.size, 0, &h, &e));
        CHECK_INT(cases[i / 4].found, h.control_type);
        for (int64_t size = KR_RECORD_BATCH_OVERHEAD; size < b.size; size++) { /* a record that is cut short */
            set_big_endian(b.at + 8, size - KR_LOG_OVERHEAD, 4);
            CHECK_STATUS(KR_OK, read_header(&b, size, 0, &h, &e));
        }
    }
}

static void test_coordinator_epoch(void) {
    static const struct {
        int type, value_size, found;
    } cases[] = {{0, 6, 77}, {1, 6, 77}, {1, 40, 77}, {1, 5, -1}, {1, -1, -1}, {2, 6, -1}};
    kr_batch_header h;
    kr_error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static bytes b, fields, records;
        b.size = fields.size = records.size = 0;
        put_hex(&fields, "00 00 00");
        put_varint(&fields, 4);
        put_int(&fields, cases[i].type, 4);
        put_varint(&fields, cases[i].value_size);
        put_int(&fields, 0, 2);
        put_int(&fields, 77, 4);
        put_fill(&fields, 0, cases[i].value_size > 6 ? cases[i].value_size - 6 : 0);
        put_record_of(&records, &fields);
        put_batch(&b, 0, 0x30, 0, 1, &records);
        CHECK_STATUS(KR_OK, read_header(&b, b.size, 0, &h, &e));
        CHECK_INT(cases[i].type, h.control_type);
        CHECK_INT(cases[i].found, h.coordinator_epoch);
        int64_t behind_epoch = b.size - (cases[i].value_size > 6 ? cases[i].value_size - 6 : 0);
        for (int64_t size = KR_RECORD_BATCH_OVERHEAD; size < b.size; size++) {
            set_big_endian(b.at + 8, size - KR_LOG_OVERHEAD, 4);
            CHECK_STATUS(KR_OK, read_header(&b, size, 0, &h, &e));
            CHECK_INT(size < behind_epoch ? -1 : cases[i].found, h.coordinator_epoch);
        }
    }
}

int main(void) {
    kr_crc_init();
    test_coordinator_epoch();
    test_header();
    test_legacy_header();
    test_every_cut();
    test_batch_length();
    test_control_type();
    return check_report("batch");
}
