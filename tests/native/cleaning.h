/* What a cleaner does to records, in the plainest way: a list of last offsets, and records copied a byte at a time. */
#ifndef KRAFTLOG_TESTS_CLEANING_H
#define KRAFTLOG_TESTS_CLEANING_H

#include "bytes.h"
#include "check.h"
#include "cleaning/kept_records.h"
#include "cleaning/offset_map.h"
#include "cleaning/rewritten_records.h"

enum { MAP_ROWS = 300 };

/* Keys, some of them null, with their offsets; each buffer in a block of its own. */
typedef struct {
    kr_lent_binary keys;
    int32_t ends[MAP_ROWS + 1];
    int64_t offsets[MAP_ROWS];
    uint8_t valid[MAP_ROWS / 8 + 1], wanted[MAP_ROWS];
    int64_t n;
} map_rows;

/* The last offset of the key of a row among wanted rows of [first, end); -1 without one. */
static inline int64_t plain_last_offset(const map_rows *r, int64_t row, int64_t first, int64_t end) {
    int64_t found = -1, size = r->ends[row + 1] - r->ends[row];
    if (kr_lent_is_null(&r->keys, row)) return -1;
    for (int64_t i = first; i < end; i++) {
        if (!r->wanted[i] || kr_lent_is_null(&r->keys, i) || r->ends[i + 1] - r->ends[i] != size) continue;
        if (!memcmp(r->keys.data + r->ends[i], r->keys.data + r->ends[row], (size_t)size)) found = r->offsets[i];
    }
    return found;
}

static inline int plain_varint(const uint8_t **p, const uint8_t *end, int most, uint64_t *out) {
    *out = 0;
    for (int i = 0; i < most; i++) {
        if (*p == end) return 0;
        uint8_t byte = *(*p)++;
        *out |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) return 1;
    }
    return 0;
}

/* One record: its bytes behind the timestamp delta, and that delta; 0 when it is cut short. */
static inline int plain_record(const uint8_t **p, const uint8_t *end, int64_t *delta, const uint8_t **rest,
                               const uint8_t **record_end, uint8_t *attributes) {
    uint64_t x;
    if (!plain_varint(p, end, 5, &x)) return 0;
    int32_t length = (int32_t)((uint32_t)x >> 1 ^ (0u - ((uint32_t)x & 1)));
    if (length < 1 || length > end - *p) return 0;
    *record_end = *p + length;
    *attributes = *(*p)++;
    if (!plain_varint(p, *record_end, 10, &x)) return 0;
    *delta = (int64_t)(x >> 1 ^ (0ull - (x & 1)));
    *rest = *p;
    *p = *record_end;
    return 1;
}

/* What is kept of records; 0 when that cannot be said. */
static inline int plain_kept(const kr_filter *f, int is_given, int64_t given, kr_kept *k, bytes *out) {
    const uint8_t *p = f->records, *end = f->records + f->size, *rest, *record_end;
    uint8_t attributes;
    int64_t delta;
    memset(k, 0, sizeof *k);
    out->size = 0;
    for (int64_t i = 0; i < f->count; i++) {
        static bytes body;
        if (!plain_record(&p, end, &delta, &rest, &record_end, &attributes)) return 0;
        if (!f->keeps[i]) continue;
        int64_t timestamp = (int64_t)((uint64_t)f->base_timestamp + (uint64_t)delta);
        if (!k->kept++) {
            k->base_timestamp = is_given ? given : timestamp;
            k->max_timestamp = timestamp;
        }
        if (timestamp > k->max_timestamp) k->max_timestamp = timestamp;
        body.size = 0;
        put_fill(&body, attributes, 1);
        put_varint(&body, (int64_t)((uint64_t)timestamp - (uint64_t)k->base_timestamp));
        put_bytes(&body, rest, record_end - rest);
        put_field(out, body.at, body.size);
    }
    k->size = out->size;
    return p == end && k->kept > 0;
}

static inline void check_kept(const kr_filter *f, int is_given, int64_t given) {
    static bytes expected;
    kr_kept plain, k;
    int is_sound = plain_kept(f, is_given, given, &plain, &expected);
    CHECK_INT(is_sound, kr_kept_measure(f, is_given, given, &k));
    if (!is_sound || failures) return;
    CHECK_INT(plain.kept, k.kept);
    CHECK_INT(plain.size, k.size);
    CHECK_INT(plain.base_timestamp, k.base_timestamp);
    CHECK_INT(plain.max_timestamp, k.max_timestamp);
    if (failures) return;
    static uint8_t zeros[BYTES_CAPACITY];
    uint8_t *out = exact_copy(zeros, k.size);
    kr_kept_write(f, &k, out);
    CHECK_BYTES(expected.at, expected.size, out, k.size);
    exact_free(out, k.size);
}

/* Rewrites records with the contents of each other in turn: where a record is sound, what was read of it is written in
 * the plainest way. Records begin to be refused where one is not. */
static inline void check_rewritten(const uint8_t *records, int64_t size) {
    enum { MOST_HEADERS = 20 };
    static bytes expected;
    kr_growing out = {0, 0, 0};
    kr_content contents[2 + 2 * MOST_HEADERS] = {{0, -1}, {0, -1}};
    int32_t headers = 0;
    const uint8_t *p = records, *end = records + size, *behind;
    kr_whole_record r;
    expected.size = 0;
    for (; p < end && (behind = kr_whole_record_read(p, end, &r)); p = behind) {
        static bytes body;
        uint64_t length;
        const uint8_t *from = p;
        CHECK_TRUE(behind > p && behind <= end && plain_varint(&from, end, KR_VARINT_MAX, &length));
        CHECK_INT(*from, r.attributes);
        body.size = 0;
        put_int(&body, r.attributes, 1);
        put_varint(&body, r.fields.timestamp_delta);
        put_varint(&body, r.fields.offset_delta);
        for (int i = 0; i < 2; i++) put_field(&body, contents[i].bytes, contents[i].size);
        put_varint(&body, headers);
        for (int i = 2; i < 2 + 2 * headers; i++) put_field(&body, contents[i].bytes, contents[i].size);
        int64_t before = out.size;
        if (expected.size + body.size + 2 * KR_VARINT_MAX > BYTES_CAPACITY / 2) break;
        CHECK_TRUE(kr_record_rewrite(&out, &r, contents, headers));
        expected.size = 0;
        put_field(&expected, body.at, body.size);
        CHECK_BYTES(expected.at, expected.size, out.bytes + before, out.size - before);
        contents[0] = (kr_content){r.fields.key, r.fields.key_length};
        contents[1] = (kr_content){r.fields.value, r.fields.value_length};
        headers = r.fields.headers_count < MOST_HEADERS ? r.fields.headers_count : MOST_HEADERS;
        from = r.fields.headers;
        for (int32_t i = 0; i < headers; i++) {
            int32_t name_size, value_size;
            kr_content *one = &contents[2 + 2 * i];
            from = kr_header_fast(from, r.fields.end, &one[0].bytes, &name_size, &one[1].bytes, &value_size);
            CHECK_TRUE(from && from <= r.fields.end);
            one[0].size = name_size;
            one[1].size = value_size;
        }
    }
    kr_growing_free(&out);
}

#endif
