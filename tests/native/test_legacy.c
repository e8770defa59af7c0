/* record/legacy.h: messages of magic 0 and 1, alone and inside a wrapper. */
#include "bytes.h"
#include "check.h"
#include "record/legacy.h"
#include "room.h"

typedef struct {
    int status;
    kr_error e;
    kr_columns c;
} outcome;

/* The message at the start of the bytes, in a block that ends where they end. */
static outcome decode_message(const bytes *b) {
    outcome o = {.e = {0}, .c = room_make(2, b->size, 1, KR_WANT_ALL)};
    kr_batch_header h;
    uint8_t *p = exact_copy(b->at, b->size);
    kr_input in = kr_input_make(p, b->size);
    CHECK_STATUS(KR_OK, kr_header_read(&in, 0, &h, &o.e));
    o.status = kr_legacy_decode(&o.c, &h, p, &o.e, KR_WANT_ALL);
    exact_free(p, b->size);
    return o;
}

static void test_message(void) {
    for (int magic = 0; magic < 2; magic++) {
        static bytes b;
        b.size = 0;
        put_message(&b, magic, INT64_MAX, 0, 1700, "key", 3, 0, -1);
        outcome o = decode_message(&b);
        CHECK_STATUS(KR_OK, o.status);
        CHECK_INT(1, o.c.rows);
        CHECK_INT(INT64_MAX, o.c.offset[0]);
        CHECK_INT(magic ? 1700 : -1, o.c.timestamp_ms[0]);
        CHECK_INT(magic ? 0 : 1, o.c.timestamp.nulls);
        CHECK_BYTES((const uint8_t *)"key", 3, o.c.key.data, o.c.key.ends[1]);
        CHECK_INT(1, o.c.value.nulls);
        CHECK_INT(0, o.c.headers.ends[1]);
        CHECK_INT(KR_NO_CONTROL_TYPE, o.c.control_type[0]);
        room_free(&o.c);
    }
}

/* Lengths of key and value that do not fit; `at` counts from the key's length. */
static void test_message_faults(void) {
    static const struct {
        int at;
        int64_t length;
        kr_error error;
    } faults[] = {
        {0, 9, {KR_BAD_KEY_LENGTH, 0, 22, 8, 9, 30}},
        {0, INT32_MAX, {KR_BAD_KEY_LENGTH, 0, 22, 8, INT32_MAX, 30}},
        {0, 5, {KR_TRUNCATED_FIELD, 0, 27, 4, 3, 30}},
        {6, 3, {KR_BAD_VALUE_LENGTH, 0, 28, 2, 3, 30}},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        static bytes b;
        b.size = 0;
        put_message(&b, 0, 1, 0, 0, "kk", 2, "vv", 2);
        set_big_endian(b.at + 18 + faults[i].at, faults[i].length, 4);
        outcome o = decode_message(&b);
        CHECK_STATUS(faults[i].error.status, o.status);
        CHECK_ERROR(faults[i].error, &o.e);
        CHECK_INT(0, o.c.rows);
        room_free(&o.c);
    }
}

static outcome decode_inner(const bytes *b, int magic, int64_t wrapper_offset, int attributes, int check_crc) {
    outcome o = {.e = {0}, .c = room_make(b->size / 26 + 1, b->size, 1, KR_WANT_ALL)};
    kr_batch_header h = {0};
    h.magic = (int8_t)magic;
    h.base_offset = wrapper_offset;
    h.base_timestamp = 9000;
    h.attributes = (int16_t)attributes;
    uint8_t *p = exact_copy(b->at, b->size);
    o.status = kr_inner_decode(&o.c, &h, p, p + b->size, check_crc, 0, &o.e, KR_WANT_ALL);
    exact_free(p, b->size);
    return o;
}

static void check_offsets(int magic, int64_t wrapper_offset, int64_t first, int64_t last, int64_t expected_first) {
    static bytes b;
    b.size = 0;
    put_message(&b, magic, first, 0, 10, 0, -1, "v", 1);
    put_message(&b, magic, last, 0, -1, 0, -1, "w", 1);
    outcome o = decode_inner(&b, magic, wrapper_offset, 1, 1);
    CHECK_STATUS(KR_OK, o.status);
    CHECK_INT(2, o.c.rows);
    CHECK_INT(expected_first, o.c.offset[0]);
    CHECK_INT((int64_t)((uint64_t)expected_first + (uint64_t)last - (uint64_t)first), o.c.offset[1]);
    CHECK_INT(magic ? 10 : -1, o.c.timestamp_ms[0]);
    CHECK_INT(-1, o.c.timestamp_ms[1]);
    room_free(&o.c);
}

static void test_inner_offsets(void) {
    check_offsets(0, 51, 50, 51, 50);              /* magic 0: absolute */
    check_offsets(1, 51, 0, 1, 50);                /* magic 1: relative, the last is the wrapper's */
    check_offsets(1, 60, 0, 7, 53);                /* with gaps */
    check_offsets(1, 51, 50, 51, 50);              /* already absolute */
    check_offsets(1, 0, 0, 1, 0);                  /* a wrapper that says nothing */
    check_offsets(1, INT64_MAX, INT64_MIN, -1, 0); /* sums wrap */
}

/* The timestamp of a LogAppendTime wrapper is that of its messages of magic 1; those of magic 0 have none. */
static void test_log_append_time(void) {
    for (int magic = 0; magic < 2; magic++) {
        for (int wrapper = 0; wrapper < 2; wrapper++) {
            static bytes b;
            b.size = 0;
            put_message(&b, magic, 0, 0, 10, 0, -1, "v", 1);
            outcome o = decode_inner(&b, wrapper, 5, 1 | KR_TIMESTAMP_TYPE_BIT, 1);
            CHECK_STATUS(KR_OK, o.status);
            CHECK_INT(magic == 0 ? -1 : wrapper ? 9000 : 10, o.c.timestamp_ms[0]);
            room_free(&o.c);
        }
    }
}

/* A second message of two that is bad in each way. */
static void test_inner_faults(void) {
    static const struct {
        int at, width;
        int64_t value, cut;
        int rows;
        kr_error error;
    } faults[] = {
        {8, 4, 13, 0, 0, {KR_BAD_RECORD_LENGTH, -1, 0, 15, 13, KR_LOG_OVERHEAD}},
        {8, 4, -1, 0, 0, {KR_BAD_RECORD_LENGTH, -1, 0, 15, -1, KR_LOG_OVERHEAD}},
        {8, 4, 16, 0, 1, {KR_BAD_RECORD_LENGTH, 1, 39, 15, 16, 27}},
        {16, 1, 2, 0, 1, {KR_BAD_INNER_MAGIC, 1, 39, 1, 2, 27}},
        {16, 1, -1, 0, 1, {KR_BAD_INNER_MAGIC, 1, 39, 1, -1, 27}},
        {17, 1, 3, 0, 1, {KR_NESTED_COMPRESSION, 1, 39, 0, 3, 27}},
        {16, 1, 1, 0, 1, {KR_TRUNCATED_FIELD, 1, 53, 4, 1, 27}},
        {22, 4, 2, 0, 1, {KR_BAD_VALUE_LENGTH, 1, 53, 1, 2, 27}},
        {0, 1, 0, 20, 1, {KR_TRUNCATED_FIELD, 1, 27, 8, 7, 7}},
        {0, 1, 0, 16, 1, {KR_TRUNCATED_FIELD, 1, 35, 4, 3, 11}},
        {0, 1, 0, 1, 1, {KR_BAD_RECORD_LENGTH, 1, 39, 14, 15, 26}},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        static bytes b;
        b.size = 0;
        put_message(&b, 0, 0, 0, 0, 0, -1, "v", 1);
        int64_t second = put_message(&b, 0, 1, 0, 0, 0, -1, "w", 1);
        set_big_endian(b.at + second + faults[i].at, faults[i].value, faults[i].width);
        b.size -= faults[i].cut;
        outcome o = decode_inner(&b, 1, 1, 1, 0);
        CHECK_STATUS(faults[i].error.status, o.status);
        CHECK_ERROR(faults[i].error, &o.e);
        CHECK_INT(faults[i].rows, o.c.rows);
        room_free(&o.c);
    }
}

/* A message whose crc does not match is left out alone if the rest is sound; without checks it is a row. */
static void test_inner_crc(void) {
    for (int rest = 0; rest < 2; rest++) {
        static bytes b;
        b.size = 0;
        put_message(&b, 1, 0, 0, 0, 0, -1, "a", 1);
        int64_t second = put_message(&b, 1, 1, 0, 0, 0, -1, "b", 1);
        int64_t third = put_message(&b, 1, 2, 0, 0, 0, -1, "c", 1);
        uint32_t stored = kr_load_uint32(b.at + second + 12);
        b.at[third - 1] ^= 1;
        b.at[b.size - 1] ^= (uint8_t)rest;
        uint32_t computed = kr_crc32(0, b.at + second + 16, (size_t)(third - second - 16));
        outcome o = decode_inner(&b, 1, 12, 1, 1);
        CHECK_ERROR(((kr_error){KR_BAD_INNER_CRC, 1, second + 12, stored, computed, (rest ? b.size : third) - second}),
                    &o.e);
        CHECK_INT(rest ? 1 : 2, o.c.rows);
        CHECK_INT(10, o.c.offset[0]);
        if (!rest) CHECK_INT(12, o.c.offset[1]);
        room_free(&o.c);
        o = decode_inner(&b, 1, 12, 1, 0);
        CHECK_STATUS(KR_OK, o.status);
        CHECK_INT(3, o.c.rows);
        room_free(&o.c);
    }
}

/* Wrappers of which Kafka returns no message. */
static void test_wrappers(void) {
    static bytes b;
    outcome o = decode_inner(&b, 1, 5, 1, 1);
    CHECK_ERROR(((kr_error){KR_EMPTY_WRAPPER, -1, 0, 1, 0, KR_LOG_OVERHEAD}), &o.e);
    room_free(&o.c);
    put_message(&b, 1, 0, 0, 0, 0, -1, "a", 1);
    put_message(&b, 1, 9, 0, 0, 0, -1, "b", 1);
    for (int magic = 0; magic < 2; magic++) {
        for (int64_t offset = 8; offset <= 9; offset++) {
            int is_less = magic == 1 && offset < 9;
            o = decode_inner(&b, magic, offset, 1, 1);
            CHECK_STATUS(is_less ? KR_BAD_WRAPPER_OFFSET : KR_OK, o.status);
            if (is_less) CHECK_ERROR(((kr_error){KR_BAD_WRAPPER_OFFSET, -1, 0, 9, 8, KR_LOG_OVERHEAD}), &o.e);
            CHECK_INT(is_less ? 0 : 2, o.c.rows);
            room_free(&o.c);
        }
    }
}

static void test_payload(void) {
    for (int magic = 0; magic < 2; magic++) {
        for (int null = 0; null < 2; null++) {
            static bytes b;
            kr_batch_header h;
            kr_error e;
            const uint8_t *payload;
            int64_t size;
            b.size = 0;
            put_message(&b, magic, 3, 1, 0, "k", 1, "zipped", null ? -1 : 6);
            kr_input in = kr_input_make(b.at, b.size);
            CHECK_STATUS(KR_OK, kr_header_read(&in, 0, &h, &e));
            CHECK_STATUS(null ? KR_BAD_VALUE_LENGTH : KR_OK, kr_legacy_payload(&h, b.at, &payload, &size, &e));
            if (!null) CHECK_BYTES((const uint8_t *)"zipped", 6, payload, size);
            if (null) CHECK_ERROR(((kr_error){KR_BAD_VALUE_LENGTH, -1, b.size, 0, -1, 0}), &e);
        }
    }
}

int main(void) {
    kr_crc_init();
    test_message();
    test_message_faults();
    test_inner_offsets();
    test_log_append_time();
    test_inner_faults();
    test_inner_crc();
    test_wrappers();
    test_payload();
    return check_report("legacy");
}
