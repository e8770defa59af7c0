/* batch/record.h and record/shape.h: the fast parsers and the careful one give the same columns, whichever of them are
 * asked for. */
#include "ones.h"
#include "walk.h"

enum { LONGEST = 200 };

/* -1 for null; short lengths more often than long ones, and those about which a word more or less is copied. */
static int64_t random_length(void) { return random_below(random_below(4) ? 20 : LONGEST + 2) - 1; }

static void put_random_record(bytes *b, int i) {
    static bytes fields;
    static uint8_t text[LONGEST];
    for (int k = 0; k < LONGEST; k++) text[k] = (uint8_t)random_next();
    fields.size = 0;
    put_fill(&fields, (int)random_below(256), 1);
    put_varint(&fields, (int64_t)random_next() >> random_below(64));
    put_varint(&fields, i);
    put_field(&fields, text, random_length());
    put_field(&fields, text, random_length());
    int64_t headers = random_below(3) ? 0 : random_below(4);
    put_varint(&fields, headers);
    for (; headers > 0; headers--) {
        int is_ascii = random_below(3) != 0;
        for (int k = 0; is_ascii && k < LONGEST; k++) text[k] &= 0x7f;
        put_field(&fields, text, random_below(random_below(9) ? 30 : LONGEST));
        put_field(&fields, text, random_below(30) - 1);
    }
    put_record_of(b, &fields);
}

static void check_same_binary(const kr_binary_column *a, const kr_binary_column *b, int64_t rows) {
    CHECK_INT(a->nulls, b->nulls);
    CHECK_BYTES((uint8_t *)a->ends, 4 * (rows + 1), (uint8_t *)b->ends, 4 * (rows + 1));
    CHECK_BYTES(a->validity, rows / 8 + 1, b->validity, rows / 8 + 1);
    CHECK_BYTES(a->data, a->ends[rows], b->data, b->ends[rows]);
}

/* Every column that was asked for, against one walk that asks for all with the careful parser. */
static void check_same(const kr_columns *a, const kr_columns *b, uint32_t want) {
    int64_t rows = a->rows;
    CHECK_INT(rows, b->rows);
    if (want & KR_WANT_KEY) check_same_binary(&a->key, &b->key, rows);
    if (want & KR_WANT_VALUE) check_same_binary(&a->value, &b->value, rows);
    if (want & KR_WANT_OFFSET) CHECK_TRUE(!memcmp(a->offset, b->offset, 8 * (size_t)rows));
    if (want & KR_WANT_TIMESTAMP) {
        CHECK_TRUE(!memcmp(a->timestamp.values, b->timestamp.values, 8 * (size_t)rows));
        CHECK_BYTES(a->timestamp.validity, rows / 8 + 1, b->timestamp.validity, rows / 8 + 1);
    }
    if (want & KR_WANT_TIMESTAMP_MS) CHECK_TRUE(!memcmp(a->timestamp_ms, b->timestamp_ms, 8 * (size_t)rows));
    if (want & KR_WANT_HEADERS) {
        CHECK_INT(a->headers.count, b->headers.count);
        CHECK_TRUE(!memcmp(a->headers.ends, b->headers.ends, 4 * (size_t)(rows + 1)));
        check_same_binary(&a->headers.key, &b->headers.key, a->headers.count);
        check_same_binary(&a->headers.value, &b->headers.value, a->headers.count);
    }
}

static void test_parsers_agree(void) {
    for (uint32_t want = 0; want <= KR_WANT_ALL; want++) {
        static bytes b;
        kr_columns careful, fast;
        kr_error e;
        b.size = 0;
        int32_t count = (int32_t)random_below(40);
        for (int i = 0; i < count; i++) put_random_record(&b, i);
        kr_batch_header h = walk_header(count);
        h.base_timestamp = random_below(3) ? (int64_t)(random_next() >> 20) : INT64_MAX;
        CHECK_STATUS(KR_OK, walk(&b, &h, &careful, &e, KR_WANT_ALL, 0));
        CHECK_STATUS(KR_OK, walk(&b, &h, &fast, &e, want, 1));
        CHECK_INT(count, fast.rows);
        check_same(&careful, &fast, want);
        room_free(&careful);
        room_free(&fast);
    }
}

/* What the records of a run have in common. */
typedef struct {
    int64_t timestamp_delta, key_length, value_length, headers;
} shape;

static int64_t random_width(void) { return (int64_t)(random_next() >> 1) >> random_below(63); }

static shape random_shape(void) {
    shape s = {random_below(3) ? random_below(300) : random_width(), random_length(), random_length(),
               random_below(8) ? 0 : random_below(3)};
    if (!random_below(4)) s.timestamp_delta = -s.timestamp_delta;
    if (!random_below(4)) s.value_length = random_below(1500);
    return s;
}

static void put_shaped_record(bytes *b, const shape *s, int64_t offset_delta) {
    static bytes fields;
    static uint8_t text[1500];
    for (size_t k = 0; k < 20; k++) text[k] = (uint8_t)random_next();
    fields.size = 0;
    put_fill(&fields, (int)random_below(256), 1);
    put_varint(&fields, s->timestamp_delta + random_below(20));
    put_varint(&fields, offset_delta);
    put_field(&fields, text, s->key_length);
    put_field(&fields, text, s->value_length);
    put_varint(&fields, s->headers);
    for (int64_t i = 0; i < s->headers; i++) {
        put_field(&fields, "key", 3);
        put_field(&fields, text, random_length() % 20);
    }
    put_record_of(b, &fields);
}

static void check_same_walk(const bytes *b, const kr_batch_header *h, uint32_t want) {
    kr_columns careful, shaped, plain;
    kr_error e = {0}, f = {0}, g = {0};
    int status = walk(b, h, &careful, &e, want, 0);
    CHECK_STATUS(status, walk(b, h, &shaped, &f, want, 1));
    CHECK_STATUS(status, walk_without_shapes(b, h, &plain, &g, want));
    if (status != KR_OK) CHECK_ERROR(e, &f);
    if (status != KR_OK) CHECK_ERROR(e, &g);
    check_same(&careful, &shaped, want);
    check_same(&careful, &plain, want);
    room_free(&careful);
    room_free(&shaped);
    room_free(&plain);
}

/* Runs of records of one shape, then the same with some bits wrong, bytes too many or too few, then cut off. */
static void test_shapes(void) {
    static bytes b;
    int64_t starts[60];
    for (int round = 0; round < 3000; round++) {
        shape s = random_shape();
        int64_t offset_delta = random_below(4) ? 0 : random_below(INT32_MAX - 1000) - 20;
        int32_t count = 0, most = (int32_t)random_below(60) + 1;
        for (b.size = 0; count < most && b.size < BYTES_CAPACITY - 2000; count++) {
            if (!random_below(10)) s = random_shape();
            starts[count] = b.size;
            put_shaped_record(&b, &s, offset_delta++);
        }
        kr_batch_header h = walk_header(count);
        if (!random_below(4)) h.attributes = KR_TIMESTAMP_TYPE_BIT;
        if (!random_below(4)) h.base_timestamp = -1 - random_below(1000);
        uint32_t want = random_below(2) ? KR_WANT_COMMON : (uint32_t)random_below(KR_WANT_ALL + 1);
        check_same_walk(&b, &h, want);
        for (int flips = 0; flips < 4; flips++) {
            int64_t at = random_below(4) ? starts[random_below(count)] + random_below(9) : random_below(b.size);
            edit_bytes(&b, at, (int)random_below(EDITS), (int)random_below(256));
            check_same_walk(&b, &h, want);
        }
        b.size -= random_below(b.size < 100 ? b.size : 100);
        check_same_walk(&b, &h, want);
    }
}

/* The fast parser needs KR_PADDING bytes behind a field: what it leaves to the careful one changes nothing. */
static void test_where_padding_ends(void) {
    static bytes b;
    kr_columns careful, mixed;
    kr_error e;
    for (int i = 0; i < 6; i++) put_random_record(&b, i);
    kr_batch_header h = walk_header(6);
    CHECK_STATUS(KR_OK, walk(&b, &h, &careful, &e, KR_WANT_ALL, 0));
    for (int64_t cut = 0; cut <= b.size; cut++) {
        int64_t total = cut + KR_PADDING > b.size ? cut + KR_PADDING : b.size;
        uint8_t *p = room_block(total);
        memset(p, 0xff, (size_t)total);
        memcpy(p, b.at, (size_t)b.size);
        mixed = room_make(b.size / KR_SMALLEST_RECORD + 1, b.size, b.size / 2 + 1, KR_WANT_ALL);
        kr_walk w = {p, p + b.size, p + cut, 0, 6, {p + b.size, p + b.size, 0}, 0};
        CHECK_STATUS(KR_OK, kr_records_decode(&w, &mixed, &h, p, &e, KR_WANT_ALL));
        check_same(&careful, &mixed, KR_WANT_ALL);
        free(p);
        room_free(&mixed);
    }
    room_free(&careful);
}

/* The checksum that runs ahead of the walk is that of all bytes, wherever its windows end. */
static void test_crc_ahead(void) {
    enum { COPIES = 8 };
    static bytes b;
    kr_columns c;
    kr_error e;
    int32_t count = 0;
    while (b.size < KR_CRC_WINDOW / 2) put_random_record(&b, count++);
    for (int k = 0; k < 50; k++) {
        int64_t skip = random_below(100), size = COPIES * b.size;
        kr_batch_header h = walk_header(COPIES * count);
        uint8_t *p = room_block(size + KR_PADDING);
        for (int i = 0; i < COPIES; i++) memcpy(p + i * b.size, b.at, (size_t)b.size);
        c = room_make(size / KR_SMALLEST_RECORD + 1, size, size / 2 + 1, KR_WANT_ALL);
        kr_walk w = {p, p + size, p + size, 0, COPIES * count, {p + skip, p + size, 0}, 0};
        CHECK_STATUS(KR_OK, kr_records_decode(&w, &c, &h, p, &e, KR_WANT_ALL & ~(k & 1 ? KR_WANT_HEADERS : 0u)));
        CHECK_INT(kr_crc32c_portable(0, p + skip, (size_t)(size - skip)),
                  kr_crc32c(w.ahead.crc, w.ahead.pos, (size_t)(p + size - w.ahead.pos)));
        free(p);
        room_free(&c);
    }
}

/* What is taken alone is what the careful parser reads; nothing else is taken. Whatever follows plays no part. */
static void check_alone(const bytes *b, int64_t size, int is_usual, int behind) {
    uint8_t *p = room_block(size + KR_PADDING);
    kr_record alone, careful;
    walk_fill_behind(p, b->at, size, KR_PADDING, behind);
    kr_reader in = kr_reader_make(p, p, p + size);
    kr_record_read(&in, &careful);
    if (kr_record_alone(p, p + size, &alone)) {
        CHECK_STATUS(KR_OK, in.error.status);
        CHECK_TRUE(alone.end == p + size && careful.end == alone.end);
        CHECK_INT(careful.timestamp_delta, alone.timestamp_delta);
        CHECK_INT(careful.offset_delta, alone.offset_delta);
        CHECK_INT(careful.key_length, alone.key_length);
        CHECK_INT(careful.headers_count, alone.headers_count);
        CHECK_BYTES(careful.value, careful.value_length, alone.value, alone.value_length);
    } else {
        CHECK_TRUE(!is_usual);
    }
    free(p);
}

static void put_record_alone(bytes *b, int64_t value_length) {
    static bytes fields;
    b->size = fields.size = 0;
    put_fields_of_one(&fields, value_length);
    put_record_of(b, &fields);
}

static void test_records_alone(void) {
    for (int64_t length = 0; length < LONGEST_ONE; length += length < 300 ? 1 : 1 + random_below(150)) {
        static bytes b, edited;
        put_record_alone(&b, length);
        check_alone(&b, b.size, length < 8180, (int)random_below(WALK_BEHIND));
        for (int k = 0; k < 20; k++) {
            edited.size = 0;
            put_bytes(&edited, b.at, b.size);
            edit_at_random(&edited);
            check_alone(&edited, edited.size - (random_below(4) ? 0 : random_below(3)), 0,
                        (int)random_below(WALK_BEHIND));
        }
    }
}

/* Each edit of each of the first bytes, of records of every size about which a length takes one byte or two: of the
 * whole, and of the fields in a record whose length fits them. */
static void test_every_edit_of_records_alone(void) {
    static const int with[] = {0, 1, 2, 5, 0x7e, 0x7f, 0x80, 0xaa, 0xfe, 0xff};
    for (int64_t length = 40; length < 80; length++) {
        for (int64_t at = 0; at < EDITED_FRONT; at++) {
            for (size_t k = 0; k < EDITS * sizeof with / sizeof *with; k++) {
                static bytes b, fields;
                put_record_alone(&b, length);
                edit_bytes(&b, at, (int)k % EDITS, with[k / EDITS]);
                check_alone(&b, b.size, 0, (int)k % WALK_BEHIND);
                b.size = fields.size = 0;
                put_fields_of_one(&fields, length);
                edit_bytes(&fields, at, (int)k % EDITS, with[k / EDITS]);
                put_record_of(&b, &fields);
                check_alone(&b, b.size, 0, (int)k % WALK_BEHIND);
            }
        }
    }
}

int main(void) {
    kr_crc_init();
    test_parsers_agree();
    test_shapes();
    test_where_padding_ends();
    test_crc_ahead();
    test_records_alone();
    test_every_edit_of_records_alone();
    return check_report("parsers");
}
