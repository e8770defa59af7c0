/* The folder message: messages to columns, to JSON and back, whole and damaged. */
#include "message/frame.h"
#include "message/json.h"
#include "message/straight.h"
#include "message_columns_check.h"

enum { ROWS = 280 }; /* more than a block */

/* What came of one message. */
typedef struct {
    int status; /* of its first fault */
    int64_t position;
    kr_growing out; /* its JSON, or the message written again */
} outcome;

static kr_message_fault *faults_of(kr_message_decoder *d, int64_t *count) {
    *count = d->faults.size / (int64_t)sizeof(kr_message_fault);
    return (kr_message_fault *)(void *)d->faults.bytes;
}

static outcome first_fault(kr_message_decoder *d) {
    outcome o;
    int64_t count;
    memset(&o, 0, sizeof o);
    kr_message_fault *faults = faults_of(d, &count);
    if (count) {
        o.status = faults[0].error.status;
        o.position = faults[0].error.position;
    }
    CHECK_TRUE(!d->no_memory);
    return o;
}

/* Decodes messages that stand behind each other: message i ends at ends[i + 1]. */
static void decode(message_columns *c, const uint8_t *p, const int32_t *ends, int64_t n) {
    static int64_t rows[ROWS];
    static const int32_t starts[ROWS], versions[ROWS];
    for (int64_t i = 0; i < n; i++) rows[i] = i;
    kr_versioned messages = {{{.ends = ends, .data = p}, rows, starts, n}, versions};
    kr_program program = c->d.program;
    c->d.limit = p + ends[n];
    CHECK_TRUE(kr_decode_versions(&c->d, &program, 0, 0, &messages));
    check_column(c, MESSAGE, n);
}

static int encode(message_columns *c, int64_t row, int uuid_text, kr_growing *out) {
    static message_sources s;
    kr_message_encoder e;
    memset(&e, 0, sizeof e);
    message_sources_make(&s, c);
    e.program = c->d.program;
    e.sources = s.sources;
    e.uuid_text = uuid_text;
    int ok = kr_encode_message(&e, row);
    CHECK_TRUE(ok || e.error.status != KR_OK);
    CHECK_TRUE(!e.no_memory);
    message_sources_free(&s);
    *out = e.out;
    return ok ? KR_OK : e.error.status;
}

/* One message alone: decoded and, when it is good, written again. */
static outcome run_columns(const message_program *m, const uint8_t *p, int64_t size, int uuid_text) {
    message_columns c;
    int32_t ends[] = {0, (int32_t)size};
    uint8_t *copy = exact_copy(p, size);
    message_columns_open(&c, m, uuid_text);
    decode(&c, copy, ends, 1);
    outcome o = first_fault(&c.d);
    if (o.status == KR_OK) {
        int status = encode(&c, 0, uuid_text, &o.out);
        CHECK_TRUE(status == KR_OK || status == KR_TAGS_NOT_RISING);
        if (status != KR_OK) o.out.size = -1;
    }
    message_columns_close(&c);
    exact_free(copy, size);
    return o;
}

static outcome run_json(const message_program *m, const uint8_t *p, int64_t size) {
    message_columns c;
    kr_growing out;
    uint8_t *copy = exact_copy(p, size);
    memset(&out, 0, sizeof out);
    message_columns_open(&c, m, 1);
    kr_json_printer json = {&c.d, &out};
    kr_print_message(&json, copy, copy, copy + size, 0);
    outcome o = first_fault(&c.d);
    o.out = out;
    if (o.status == KR_OK) CHECK_TRUE(out.size >= 2 && out.bytes[0] == '{' && out.bytes[out.size - 1] == '}');
    if (o.status != KR_OK && o.status != KR_MESSAGE_TRAILING_BYTES) CHECK_INT(0, out.size);
    message_columns_close(&c);
    exact_free(copy, size);
    return o;
}

/* The same verdict in each way of reading; what is good is written so that it is read as it was. */
static int check_message(const message_program *m, const uint8_t *p, int64_t size) {
    outcome text = run_columns(m, p, size, 1), binary = run_columns(m, p, size, 0), json = run_json(m, p, size);
    CHECK_STATUS(text.status, json.status);
    CHECK_INT(text.position, json.position);
    CHECK_STATUS(text.status, binary.status);
    CHECK_INT(text.position, binary.position);
    CHECK_INT(text.out.size, binary.out.size);
    if (text.status == KR_OK && text.out.size >= 0) {
        CHECK_BYTES(text.out.bytes, text.out.size, binary.out.bytes, binary.out.size);
        outcome again = run_columns(m, text.out.bytes, text.out.size, 1);
        CHECK_STATUS(KR_OK, again.status);
        CHECK_BYTES(text.out.bytes, text.out.size, again.out.bytes, again.out.size);
        kr_growing_free(&again.out);
    }
    kr_growing_free(&text.out);
    kr_growing_free(&binary.out);
    kr_growing_free(&json.out);
    return text.status;
}

static void test_the_same_bytes_back(void) {
    static bytes b;
    for (int i = 0; i < 400; i++) {
        message_program m;
        b.size = 0;
        message_program_make(&m, i & 1);
        put_random_message(&b, i & 1);
        outcome o = run_columns(&m, b.at, b.size, i & 2);
        CHECK_STATUS(KR_OK, o.status);
        CHECK_BYTES(b.at, b.size, o.out.bytes, o.out.size);
        kr_growing_free(&o.out);
        CHECK_STATUS(KR_OK, check_message(&m, b.at, b.size));
    }
}

/* Some rows of a block are bad: those around them are as they are alone. */
static void test_blocks(void) {
    static bytes b;
    static int32_t ends[ROWS + 1];
    for (int is_compact = 0; is_compact < 2; is_compact++) {
        message_program m;
        message_columns c;
        int64_t bad = 0, count;
        b.size = 0;
        message_program_make(&m, is_compact);
        for (int i = 0; i < ROWS; i++) {
            if (i % 7 != 3) put_random_message(&b, is_compact);
            if (i % 7 == 3) put_hex(&b, "01 ffff");
            bad += i % 7 == 3;
            ends[i + 1] = (int32_t)b.size;
        }
        uint8_t *copy = exact_copy(b.at, b.size);
        message_columns_open(&c, &m, 1);
        decode(&c, copy, ends, ROWS);
        kr_message_fault *faults = faults_of(&c.d, &count);
        CHECK_INT(bad, count);
        for (int64_t i = 0; i < count; i++) CHECK_INT(7 * i + 3, faults[i].row);
        for (int i = 0; i < ROWS; i += 5) {
            kr_growing out;
            if (i % 7 == 3) continue;
            CHECK_STATUS(KR_OK, encode(&c, i, 1, &out));
            CHECK_BYTES(b.at + ends[i], ends[i + 1] - ends[i], out.bytes, out.size);
            kr_growing_free(&out);
        }
        message_columns_close(&c);
        exact_free(copy, b.size);
    }
}

static void damage(bytes *b) {
    static const uint8_t interesting[] = {0, 1, 2, 0x0f, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    for (int64_t n = random_below(4); n > 0 && b->size; n--) {
        int64_t at = random_below(b->size);
        switch (random_below(4)) {
        case 0:
            b->size = at;
            break;
        case 1:
            b->at[at] = interesting[random_below((int64_t)sizeof interesting)];
            break;
        case 2:
            b->at[at] = (uint8_t)random_below(256);
            break;
        default:
            memmove(b->at + at, b->at + at + 1, (size_t)(b->size - at - 1));
            b->size--;
        }
    }
}

static void test_damaged(void) {
    static bytes b;
    int seen[KR_STATUS_COUNT] = {0};
    for (int i = 0; i < 6000; i++) {
        message_program m;
        b.size = 0;
        message_program_make(&m, i & 1);
        put_random_message(&b, i & 1);
        damage(&b);
        seen[check_message(&m, b.at, b.size)]++;
    }
    for (int i = 0; i < 2000; i++) {
        message_program m;
        b.size = 0;
        message_program_make(&m, i & 1);
        put_random(&b, random_below(80));
        seen[check_message(&m, b.at, b.size)]++;
    }
    static const int expected[] = {KR_OK,
                                   KR_TRUNCATED_FIELD,
                                   KR_VARINT_TOO_LONG,
                                   KR_BAD_LENGTH,
                                   KR_BAD_ELEMENTS_COUNT,
                                   KR_UNEXPECTED_NULL,
                                   KR_BAD_TAGGED_FIELDS_COUNT,
                                   KR_BAD_TAGGED_FIELD_SIZE,
                                   KR_MESSAGE_TRAILING_BYTES};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) CHECK_TRUE(seen[expected[i]] > 0);
}

/* A plain message up to `numbers`: no flag, no name, a uuid of zeros. */
static const char plain_start[] = "00 ffff 00000000000000000000000000000000";
static const char compact_start[] = "00 00 00000000000000000000000000000000";

static void check_fault(int is_compact, const char *rest, int status, int64_t position) {
    static bytes b;
    message_program m;
    b.size = 0;
    message_program_make(&m, is_compact);
    put_hex(&b, is_compact ? compact_start : plain_start);
    put_hex(&b, rest);
    CHECK_STATUS(status, check_message(&m, b.at, b.size));
    outcome o = run_columns(&m, b.at, b.size, 1);
    CHECK_INT(position, o.position);
    kr_growing_free(&o.out);
}

static void test_faults(void) {
    check_fault(0, "ffffffff 00000000 ff 00000000", KR_OK, 0);
    check_fault(0, "ffffffff 00000000 ff 00000000 00", KR_MESSAGE_TRAILING_BYTES, 32);
    check_fault(0, "7fffffff 00000000 ff 00000000", KR_BAD_ELEMENTS_COUNT, 23);
    check_fault(0, "00000001 000000", KR_BAD_ELEMENTS_COUNT, 23);
    check_fault(0, "ffffffff ffffffff ff 00000000", KR_UNEXPECTED_NULL, 27);
    check_fault(0, "ffffffff 00000000 ff 00000001 ffff", KR_UNEXPECTED_NULL, 34);
    check_fault(0, "ffffffff 00000000 ff 00000001 0005", KR_BAD_LENGTH, 34);
    check_fault(0, "ffffffff 00000000", KR_TRUNCATED_FIELD, 27);
    check_fault(1, "00 01 ff 01 00", KR_OK, 0);
    check_fault(1, "ffffffff07 01 ff 01 00", KR_BAD_ELEMENTS_COUNT, 23);
    check_fault(1, "ffffffff0f 01 ff 01 00", KR_OUT_OF_RANGE, 18);
    check_fault(1, "ffffffffff 01 ff 01 00", KR_VARINT_TOO_LONG, 18);
    check_fault(1, "00 01 ff 01 7f 00", KR_BAD_TAGGED_FIELDS_COUNT, 23);
    check_fault(1, "00 01 ff 01 01 00 02 0161", KR_BAD_TAGGED_FIELD_SIZE, 26);
    check_fault(1, "00 01 ff 01 01 00 03 0261", KR_BAD_LENGTH, 25);
    check_fault(1, "00 01 ff 01 02 00 02 0261 00 02 0262", KR_REPEATED_TAG, 29);
    check_fault(1, "00 01 ff 01 01 00 01 00", KR_UNEXPECTED_NULL, 26);
    check_fault(1, "00 01 ff 01 02 09 00 08 00", KR_OK, 0); /* unknown tags in any order */
}

static void check_json(int is_compact, const char *hex, const char *expected) {
    static bytes b;
    message_program m;
    b.size = 0;
    message_program_make(&m, is_compact);
    put_hex(&b, hex);
    outcome o = run_json(&m, b.at, b.size);
    CHECK_STATUS(KR_OK, o.status);
    CHECK_BYTES((const uint8_t *)expected, strlen(expected), o.out.bytes, o.out.size);
    kr_growing_free(&o.out);
}

static void test_json(void) {
    check_json(0, "00 ffff 00000000000000000000000000000000 ffffffff 00000000 ff 00000000",
               "{\"flag\":false,\"name\":null,\"id\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"numbers\":null,\"list\":[],"
               "\"maybe\":null,\"words\":[]}");
    check_json(
        1,
        "01 03 2201 000102030405060708090a0b0c0d0e0f 02 fffffffe 02 ffff 02 61 02 03 08 0000000000000007 09 00"
        "01 03 fbff 3ff8000000000000 00 03 01 02 e2 01 05 06 01 ffffffff 00",
        "{\"flag\":true,\"name\":\"\\\"\\u0001\",\"id\":\"AAECAwQFBgcICQoLDA0ODw\",\"numbers\":[-2],"
        "\"list\":[{\"port\":65535,\"host\":\"a\",\"tag\":7,\"unknownTaggedFields\":[{\"tag\":9,\"data\":\"\"}]}],"
        "\"maybe\":{\"bytes\":\"+/8=\",\"score\":1.5},\"words\":[\"\",\"\xef\xbf\xbd\"],"
        "\"tagStruct\":{\"count\":4294967295}}");
}

static void test_frames(void) {
    static const char *const values[] = {"01 02 03 ff", "01 80", "00 02 03", "", "01 808002 00", "01 80808080 80 00"};
    static const int statuses[] = {KR_OK,           KR_TRUNCATED_FIELD, KR_BAD_FRAME_VERSION, KR_TRUNCATED_FIELD,
                                   KR_OUT_OF_RANGE, KR_VARINT_TOO_LONG};
    enum { COUNT = sizeof statuses / sizeof *statuses };
    for (int i = 0; i < COUNT; i++) {
        static bytes b;
        int32_t type, version, start, ends[2] = {0};
        kr_frames f;
        b.size = 0;
        put_hex(&b, values[i]);
        ends[1] = (int32_t)b.size;
        uint8_t *copy = exact_copy(b.at, b.size);
        kr_lent_binary v = {.ends = ends, .data = copy};
        memset(&f, 0, sizeof f);
        f.types = &type;
        f.versions = &version;
        f.starts = &start;
        kr_read_frames(&v, 1, &f);
        const kr_frame_fault *fault = (const kr_frame_fault *)(const void *)f.faults.bytes;
        CHECK_INT(statuses[i] != KR_OK, f.faults.size / (int64_t)sizeof *fault);
        CHECK_STATUS(statuses[i], f.faults.size ? fault[0].status : KR_OK);
        CHECK_INT(i ? KR_NO_TYPE : 2, type);
        CHECK_INT(i ? KR_NO_VERSION : 3, version);
        if (!i) CHECK_INT(3, start);
        kr_growing_free(&f.faults);
        exact_free(copy, b.size);
    }
}

static void test_prefixes(void) {
    static const uint8_t at[] = {0xff, 0xfe, 7};
    static const int32_t ends[] = {0, 2, 3, 3, 3};
    static const uint8_t valid[] = {7};
    kr_lent_binary v = {.ends = ends, .data = at, .validity = valid};
    int32_t numbers[4], starts[4];
    for (int are_keys = 0; are_keys < 2; are_keys++) {
        kr_frames f;
        memset(&f, 0, sizeof f);
        f.starts = starts;
        kr_read_int16_prefixes(&v, 4, are_keys ? KR_NULL_KEY : KR_OK, &f, numbers,
                               are_keys ? KR_NO_TYPE : KR_NO_VERSION);
        CHECK_INT(-2, numbers[0]);
        for (int i = 1; i < 4; i++) CHECK_INT(are_keys ? KR_NO_TYPE : KR_NO_VERSION, numbers[i]);
        CHECK_INT(2 + are_keys, f.faults.size / (int64_t)sizeof(kr_frame_fault)); /* a null value is a tombstone */
        kr_growing_free(&f.faults);
    }
}

static void test_groups(void) {
    int32_t types[ROWS], versions[ROWS];
    int64_t rows[ROWS];
    uint8_t ids[ROWS];
    kr_group groups[KR_MOST_GROUPS];
    for (int i = 0; i < ROWS; i++) {
        types[i] = (int32_t)random_below(3);
        versions[i] = types[i] == 1 || random_below(4) == 0 ? KR_NO_VERSION : -types[i] - i / 100;
    }
    int count = kr_group_rows(types, versions, ROWS, groups, ids, rows);
    CHECK_INT(3, count);
    int64_t at = 0;
    for (int g = 0; g < count; g++) {
        for (int64_t i = 0; i < groups[g].count; i++, at++) {
            CHECK_INT(groups[g].type, types[rows[at]]);
            CHECK_TRUE(!i || rows[at] > rows[at - 1]);
        }
        int has_none = groups[g].type == 1;
        CHECK_INT(has_none ? KR_NO_VERSION : -groups[g].type - 2, groups[g].first_version);
        CHECK_INT(has_none ? KR_NO_VERSION : -groups[g].type, groups[g].last_version);
    }
    CHECK_INT(ROWS, at);
    for (int i = 0; i < ROWS; i++) types[i] = i;
    CHECK_INT(KR_MOST_GROUPS, kr_group_rows(types, versions, KR_MOST_GROUPS, groups, ids, rows));
    CHECK_INT(KR_MANY_GROUPS, kr_group_rows(types, versions, KR_MOST_GROUPS + 1, groups, ids, rows));
}

int main(void) {
    kr_uuid_text_init();
    test_the_same_bytes_back();
    test_blocks();
    test_damaged();
    test_faults();
    test_json();
    test_frames();
    test_prefixes();
    test_groups();
    return check_report("message");
}
