/* batch/record.h: the walk over well-formed records, by both parsers. */
#include "walk.h"

static const char *const three_headers[] = {"a", "1", "", 0, "a", "", 0};

static void put_all_kinds(bytes *b) {
    put_record(b, 0, 0, "key", "value", 0);
    put_record(b, -6000, 1, 0, 0, 0);
    put_record(b, 70, 64, "", "", three_headers);
    put_record(b, INT64_MAX, INT32_MAX, "k", "v", 0);
    put_record(b, -5001, -1, "a key of more than sixteen bytes",
               "a value of more than sixty-four bytes, which is where whole words give way to memcpy", 0);
}

static void check_all_kinds(const kr_columns *c) {
    static const int64_t offsets[] = {100, 101, 164, 100 + (int64_t)INT32_MAX, 99};
    static const int64_t milliseconds[] = {5000, -1000, 5070, INT64_MIN + 4999, -1};
    static const int valid[] = {1, 1, 1, 0, 0}, headers[] = {0, 0, 0, 3, 3, 3};
    CHECK_INT(5, c->rows);
    CHECK_INT(2, c->timestamp.nulls);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(offsets[i], c->offset[i]);
        CHECK_INT(milliseconds[i], c->timestamp_ms[i]);
        CHECK_INT(valid[i], room_bit(c->timestamp.validity, i));
        CHECK_INT(valid[i] ? 1000 * milliseconds[i] : 0, c->timestamp.values[i]);
        CHECK_INT(KR_NO_CONTROL_TYPE, c->control_type[i]);
        CHECK_INT(headers[i], c->headers.ends[i]);
    }
    CHECK_TEXT("key", c->key, 0);
    CHECK_TEXT("value", c->value, 0);
    CHECK_TEXT(0, c->key, 1);
    CHECK_TEXT(0, c->value, 1);
    CHECK_TEXT("", c->key, 2);
    CHECK_TEXT("", c->value, 2);
    CHECK_TEXT("v", c->value, 3);
    CHECK_TEXT("a key of more than sixteen bytes", c->key, 4);
    CHECK_INT(84, c->value.ends[5] - c->value.ends[4]);
    for (int i = 0; i < 3; i++) {
        CHECK_TEXT(three_headers[2 * i], c->headers.key, i);
        CHECK_TEXT(three_headers[2 * i + 1], c->headers.value, i);
    }
}

static void test_values(void) {
    for (int spare = 0; spare < 2; spare++) {
        static bytes b;
        kr_batch_header h = walk_header(5);
        kr_columns c;
        kr_error e;
        b.size = 0;
        put_all_kinds(&b);
        CHECK_STATUS(KR_OK, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
        check_all_kinds(&c);
        c.batches = 1;
        c.batch[0] = h;
        c.batch[0].rows = (int32_t)c.rows;
        room_check(&c, KR_WANT_ALL);
        room_free(&c);
    }
}

/* LogAppendTime: the batch's max_timestamp counts, whatever the records say. */
static void test_log_append_time(void) {
    for (int spare = 0; spare < 2; spare++) {
        static bytes b;
        kr_batch_header h = walk_header(2);
        kr_columns c;
        kr_error e;
        b.size = 0;
        put_record(&b, 1, 0, 0, 0, 0);
        put_record(&b, INT64_MIN, 1, 0, 0, three_headers);
        h.attributes = KR_TIMESTAMP_TYPE_BIT;
        CHECK_STATUS(KR_OK, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
        CHECK_INT(6000, c.timestamp_ms[0]);
        CHECK_INT(6000000, c.timestamp.values[1]);
        room_free(&c);
    }
}

static void test_control_types(void) {
    static bytes b, fields;
    static const int keys[] = {4, 6, 3, -1};
    static const int types[] = {2, 2, KR_NO_CONTROL_TYPE, KR_NO_CONTROL_TYPE};
    for (int i = 0; i < 4; i++) {
        fields.size = 0;
        put_hex(&fields, "00 00 00");
        put_field(&fields, "\0\0\0\2\0\0", keys[i]);
        put_hex(&fields, "00 00");
        put_record_of(&b, &fields);
    }
    kr_batch_header h = walk_header(4);
    kr_columns c;
    kr_error e;
    for (int control = 0; control < 2; control++) {
        h.attributes = control ? KR_CONTROL_BIT : 0;
        CHECK_STATUS(KR_OK, walk(&b, &h, &c, &e, KR_WANT_ALL, 1));
        for (int i = 0; i < 4; i++) CHECK_INT(control ? types[i] : KR_NO_CONTROL_TYPE, c.control_type[i]);
        room_free(&c);
    }
}

/* Forms that Kafka accepts though no one writes them: attributes, long varints, lengths below -1. */
static void test_odd_but_sound(void) {
    for (int spare = 0; spare < 2; spare++) {
        static bytes b;
        kr_batch_header h = walk_header(3);
        kr_columns c;
        kr_error e;
        b.size = 0;
        put_hex(&b, "10 ff 00 00 0d 04 7878 00");
        put_hex(&b, "24 80 8000 8000 848000 7979 8180808000 808000");
        put_hex(&b, "8e808000 00 00 04 01 01 8000");
        CHECK_STATUS(KR_OK, walk(&b, &h, &c, &e, KR_WANT_ALL, spare));
        CHECK_INT(3, c.rows);
        CHECK_TEXT(0, c.key, 0);
        CHECK_TEXT("xx", c.value, 0);
        CHECK_TEXT("yy", c.key, 1);
        CHECK_TEXT(0, c.value, 1);
        CHECK_INT(102, c.offset[2]);
        room_free(&c);
    }
}

/* Of the metadata log's records only its markers and feature levels, whatever form their varints have. */
static void test_only_markers(void) {
    static const struct {
        const char *value;
        int is_marker;
    } cases[] = {
        {"01 17 00 00", 1},
        {"01 18 00 00", 1},
        {"01 19 00 00", 1},
        {"01 16 00 00", 0},
        {"01 0c 00 00", 1},
        {"01 8c00 00", 1},
        {"00 0c 00 00", 0},
        {"01 0b 00 00", 0},
        {"01 0d 00 00", 0},
        {"01 1a 00 00", 0},
        {"00 17 00 00", 0},
        {"01", 0},
        {"", 0},
        {"01 17", 1},
        {"8100 17 00", 1},
        {"01 9780808000", 1},
        {"01 97", 0},
        {"81", 0},
        {"01 978001", 0},
        {"0197808080", 0},
        {"80808080 80 17", 0},
    };
    static bytes b, value, fields;
    enum { COUNT = sizeof cases / sizeof *cases };
    int markers = 0;
    b.size = 0;
    for (int i = 0; i < COUNT; i++) {
        value.size = fields.size = 0;
        put_hex(&value, cases[i].value);
        put_hex(&fields, "00 00");
        put_varint(&fields, i);
        put_varint(&fields, -1);
        put_field(&fields, value.at, value.size);
        put_varint(&fields, 0);
        put_record_of(&b, &fields);
    }
    for (int spare = 0; spare < 2; spare++) { /* the fast parser, and the careful one */
        kr_batch_header h = walk_header(COUNT);
        kr_columns c;
        kr_error e;
        CHECK_STATUS(KR_OK, walk(&b, &h, &c, &e, KR_WANT_MARKERS, spare));
        markers = 0;
        for (int i = 0; i < COUNT; i++)
            if (cases[i].is_marker) CHECK_INT(h.base_offset + i, c.offset[markers++]);
        CHECK_INT(markers, c.rows);
        room_free(&c);
    }
}

int main(void) {
    kr_crc_init();
    test_only_markers();
    test_values();
    test_log_append_time();
    test_control_types();
    test_odd_but_sound();
    return check_report("record");
}
