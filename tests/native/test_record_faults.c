/* batch/record.h: each way in which a record can be bad, found by name, position, expected, actual and bytes lost. */
#include "walk.h"

/* One record of these bytes in a batch that says `count`. Where the bytes are not whole records, all of them are
 * lost. */
static const struct {
    const char *hex;
    int32_t count;
    kr_error error;
} faults[] = {
    /* the length itself: nothing behind it can be found */
    {"ff", 1, {KR_TRUNCATED_FIELD, 0, 1, 1, 0, 1}},
    {"8080808080 00", 1, {KR_VARINT_TOO_LONG, 0, 5, 5, 5, 6}},
    {"01 00000000000000", 1, {KR_BAD_RECORD_LENGTH, 0, 1, 7, -1, 8}},
    {"ffffffff0f 000000", 1, {KR_BAD_RECORD_LENGTH, 0, 5, 3, INT32_MIN, 8}},
    {"0e 000000000000", 1, {KR_BAD_RECORD_LENGTH, 0, 1, 6, 7, 7}},
    {"feffffff0f 000000000000", 1, {KR_BAD_RECORD_LENGTH, 0, 5, 6, INT32_MAX, 11}},
    /* the record ends inside a field */
    {"00", 1, {KR_TRUNCATED_FIELD, 0, 1, 1, 0, 1}},
    {"02 00", 1, {KR_TRUNCATED_FIELD, 0, 2, 1, 0, 2}},
    {"04 0080", 1, {KR_TRUNCATED_FIELD, 0, 3, 1, 0, 3}},
    {"06 000080", 1, {KR_TRUNCATED_FIELD, 0, 4, 1, 0, 4}},
    {"06 000000", 1, {KR_TRUNCATED_FIELD, 0, 4, 1, 0, 4}},
    {"08 00000001", 1, {KR_TRUNCATED_FIELD, 0, 5, 1, 0, 5}},
    {"0a 0000000101", 1, {KR_TRUNCATED_FIELD, 0, 6, 1, 0, 6}},
    /* varints that do not end */
    {"1c 00 8080808080808080808080 0001", 1, {KR_VARINT_TOO_LONG, 0, 12, 10, 10, 15}},
    {"12 00 00 808080808000 01", 1, {KR_VARINT_TOO_LONG, 0, 8, 5, 5, 10}},
    {"14 00 00 00 808080808000 01", 1, {KR_VARINT_TOO_LONG, 0, 9, 5, 5, 11}},
    {"16 00 00 00 01 808080808000 00", 1, {KR_VARINT_TOO_LONG, 0, 10, 5, 5, 12}},
    {"16 00 00 00 01 01 808080808000", 1, {KR_VARINT_TOO_LONG, 0, 11, 5, 5, 12}},
    /* key and value */
    {"0c 000000 06 0100", 1, {KR_BAD_KEY_LENGTH, 0, 5, 2, 3, 7}},
    {"14 000000 feffffff0f 0100", 1, {KR_BAD_KEY_LENGTH, 0, 9, 2, INT32_MAX, 11}},
    {"0e 000000 02 61 04 62", 1, {KR_BAD_VALUE_LENGTH, 0, 7, 1, 2, 8}},
    {"14 000000 01 feffffff0f 62", 1, {KR_BAD_VALUE_LENGTH, 0, 10, 1, INT32_MAX, 11}},
    /* headers */
    {"0c 000000 01 01 01", 1, {KR_BAD_HEADERS_COUNT, 0, 7, 0, -1, 7}},
    {"0c 000000 01 01 02", 1, {KR_BAD_HEADERS_COUNT, 0, 7, 0, 1, 7}},
    {"14 000000 01 01 feffffff0f", 1, {KR_BAD_HEADERS_COUNT, 0, 11, 0, INT32_MAX, 11}},
    {"10 000000 01 01 02 01 01", 1, {KR_BAD_HEADER_KEY_LENGTH, 0, 8, 1, -1, 9}},
    {"10 000000 01 01 02 04 61", 1, {KR_BAD_HEADER_KEY_LENGTH, 0, 8, 1, 2, 9}},
    {"12 000000 01 01 02 02 61 04", 1, {KR_BAD_HEADER_VALUE_LENGTH, 0, 10, 0, 2, 10}},
    {"10 000000 01 01 04 00 01", 1, {KR_TRUNCATED_FIELD, 0, 9, 1, 0, 9}},
    /* the fields end before the record does */
    {"0e 000000 01 01 00 ff", 1, {KR_BAD_RECORD_SIZE, 0, 7, 7, 6, 8}},
    {"14 000000 01 01 02 00 01 7878", 1, {KR_BAD_RECORD_SIZE, 0, 9, 10, 8, 11}},
    /* the batch and its records_count */
    {"", 1, {KR_MISSING_RECORDS, -1, 0, 1, 0, 0}},
    {"0c 000000 01 01 00", 3, {KR_MISSING_RECORDS, -1, 7, 3, 1, 0}},
    {"0c 000000 01 01 00", 0, {KR_TRAILING_BYTES, -1, 0, 0, 7, 7}},
    {"0c 000000 01 01 00 00", 1, {KR_TRAILING_BYTES, -1, 7, 1, 1, 1}},
};

static void test_faults(void) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (int spare = 0; spare < 2; spare++) {
            static bytes b;
            kr_batch_header h = walk_header(faults[i].count);
            kr_columns c;
            kr_error e = {0};
            b.size = 0;
            put_hex(&b, faults[i].hex);
            CHECK_STATUS(faults[i].error.status, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
            CHECK_ERROR(faults[i].error, &e);
            int kept = faults[i].error.record_index < 0 && faults[i].count && b.size ? 1 : 0;
            CHECK_INT(kept, c.rows);
            CHECK_INT(0, c.headers.count);
            room_free(&c);
        }
    }
}

/* Fields of a hundred bytes, and nothing behind them but the end of the memory: where the padding ends the fast parser
 * must stop. `more` is what follows the field. */
static void test_end_of_memory(void) {
    static const struct {
        const char *before, *more;
        int status;
    } ends[] = {
        {"000000", "", KR_TRUNCATED_FIELD},
        {"000000", "80", KR_TRUNCATED_FIELD},
        {"000000", "02", KR_BAD_VALUE_LENGTH},
        {"000000", "00", KR_TRUNCATED_FIELD},
        {"00000001", "", KR_TRUNCATED_FIELD},
        {"00000001", "80", KR_TRUNCATED_FIELD},
        {"00000001", "8080", KR_TRUNCATED_FIELD},
        {"00000001", "02", KR_BAD_HEADERS_COUNT},
        {"00000001", "00", KR_OK},
    };
    static const char hundred[100];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        static bytes b, fields;
        kr_batch_header h = walk_header(1);
        kr_error e;
        b.size = fields.size = 0;
        put_hex(&fields, ends[i].before);
        put_field(&fields, hundred, 100);
        put_hex(&fields, ends[i].more);
        put_record_of(&b, &fields);
        uint8_t *p = exact_copy(b.at, b.size);
        kr_columns c = room_make(b.size / KR_SMALLEST_RECORD + 1, b.size, b.size, KR_WANT_ALL);
        kr_walk w = {p, p + b.size, p + b.size - KR_PADDING, 0, 1, {p + b.size, p + b.size, 0}, 0};
        CHECK_STATUS(ends[i].status, kr_records_decode(&w, &c, &h, p, &e, KR_WANT_ALL));
        CHECK_INT(ends[i].status == KR_OK, c.rows);
        exact_free(p, b.size);
        room_free(&c);
    }
}

/* A record that reaches into the next batch, where bytes stand that would make it whole. */
static void test_end_of_batch(void) {
    static bytes b;
    kr_batch_header h = walk_header(1);
    kr_error e;
    put_record(&b, 0, 0, "key", "value", 0);
    int64_t size = b.size;
    put_fill(&b, 0, KR_PADDING);
    for (int64_t cut = 0; cut <= size; cut++) {
        kr_columns c = room_make(size / KR_SMALLEST_RECORD + 1, size, size, KR_WANT_ALL);
        kr_walk w = {b.at, b.at + cut, b.at + size, 0, 1, {b.at + cut, b.at + cut, 0}, 0};
        int status = cut == 0 ? KR_MISSING_RECORDS : cut < size ? KR_BAD_RECORD_LENGTH : KR_OK;
        CHECK_STATUS(status, kr_records_decode(&w, &c, &h, b.at, &e, KR_WANT_ALL));
        CHECK_INT(cut == size, c.rows);
        room_free(&c);
    }
}

/* A bad record between sound ones is left out alone; where the rest does not fit together, all of it is. */
static void test_neighbours(void) {
    for (int rest = 0; rest < 3; rest++) {
        for (int spare = 0; spare < 2; spare++) {
            static bytes b;
            kr_batch_header h = walk_header(4);
            kr_columns c;
            kr_error e;
            b.size = 0;
            put_record(&b, 0, 0, "a", "b", 0);
            int64_t bad = b.size;
            put_hex(&b, "0e 000000 02 61 04 62");
            int64_t behind = b.size;
            put_record(&b, 0, 2, "c", 0, 0);
            if (rest == 1) put_hex(&b, "0e 000000 02 61 04 62"); /* a second bad one */
            if (rest != 1) put_record(&b, 0, 3, 0, "d", 0);
            if (rest == 2) put_fill(&b, 0, 1); /* one byte too many */
            CHECK_STATUS(KR_BAD_VALUE_LENGTH, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
            int64_t lost = (rest == 0 ? behind : b.size) - bad;
            CHECK_ERROR(((kr_error){KR_BAD_VALUE_LENGTH, 1, bad + 7, 1, 2, lost}), &e);
            CHECK_INT(rest == 0 ? 3 : 1, c.rows);
            CHECK_TEXT("a", c.key, 0);
            if (rest == 0) {
                CHECK_INT(102, c.offset[1]);
                CHECK_TEXT("c", c.key, 1);
                CHECK_TEXT("d", c.value, 2);
            }
            room_free(&c);
        }
    }
}

/* Null header values before the fault of a record do not count for the sound record behind it. */
static void test_headers_before_a_fault(void) {
    static const char *const one[] = {"k", "v", 0};
    for (int spare = 0; spare < 2; spare++) {
        static bytes b;
        kr_batch_header h = walk_header(3);
        kr_columns c;
        kr_error e;
        b.size = 0;
        put_record(&b, 0, 0, "a", "b", one);
        put_hex(&b, "1e 000000 01 01 06 02 61 01 02 62 01 02 63 04");
        put_record(&b, 0, 2, "c", "d", one);
        CHECK_STATUS(KR_BAD_HEADER_VALUE_LENGTH, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
        CHECK_INT(2, c.rows);
        CHECK_INT(2, c.headers.count);
        for (int i = 0; i < 2; i++) {
            CHECK_TEXT("k", c.headers.key, i);
            CHECK_TEXT("v", c.headers.value, i);
        }
        CHECK_INT(0, c.headers.value.nulls);
        c.batches = 1;
        c.batch[0] = h;
        c.batch[0].rows = (int32_t)c.rows;
        room_check(&c, KR_WANT_ALL);
        room_free(&c);
    }
}

/* More headers than there is room for is no fault; rows that are taken back leave no cleared bit behind. */
static void test_headers_need_room(void) {
    static bytes b;
    static const char *const two[] = {"k", "v", "k", 0, 0};
    put_record(&b, -5001, 0, 0, 0, 0);
    put_record(&b, 0, 1, 0, "v", two);
    put_record(&b, 0, 2, "k", 0, two);
    kr_batch_header h = walk_header(3);
    for (int64_t room = 0; room <= 4; room++) {
        kr_error e;
        uint8_t *p = exact_copy(b.at, b.size);
        kr_columns c = room_make(3, b.size, room, KR_WANT_ALL);
        kr_walk w = {p, p + b.size, p, 0, 3, {p + b.size, p + b.size, 0}, 0};
        const kr_columns before = c;
        CHECK_STATUS(room < 4 ? KR_NEEDS_ROOM : KR_OK, kr_records_decode(&w, &c, &h, p, &e, KR_WANT_ALL));
        CHECK_INT(room / 2 + 1, c.rows);
        kr_columns_return_to(&c, &before, KR_WANT_ALL);
        CHECK_INT(0, c.rows);
        room_check(&c, KR_WANT_ALL);
        exact_free(p, b.size);
        room_free(&c);
    }
}

int main(void) {
    kr_crc_init();
    test_faults();
    test_end_of_memory();
    test_end_of_batch();
    test_neighbours();
    test_headers_before_a_fault();
    test_headers_need_room();
    return check_report("record_faults");
}
