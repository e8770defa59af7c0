/* Columns of exactly the size that columns.h asks for, each in a heap block of its own, and a check of what is in
 * them. */
#ifndef KRAFTLOG_TESTS_ROOM_H
#define KRAFTLOG_TESTS_ROOM_H

#include "check.h"
#include "columns.h"
#include "utf8.h"

enum { WANT_ALL = 127 };

static inline void *room_block(int64_t size) {
    void *p = malloc((size_t)(size > 0 ? size : 1));
    if (!p) abort();
    return p;
}

static inline void room_binary(kr_binary_column *c, int64_t rows, int64_t data) {
    c->ends = room_block((rows + 1) * (int64_t)sizeof *c->ends);
    c->data = room_block(data + KR_PADDING);
    c->validity = room_block(rows / 8 + 2);
    c->ends[0] = 0;
    c->nulls = 0;
    memset(c->validity, 0xff, (size_t)(rows / 8 + 2));
}

static inline kr_columns room_make(int64_t rows, int64_t size, int64_t headers, uint32_t want) {
    kr_columns c;
    memset(&c, 0, sizeof c);
    c.max_rows = rows;
    c.max_bytes = size;
    c.max_headers = headers;
    c.max_batches = rows;
    if (want & KR_WANT_KEY) room_binary(&c.key, rows, size);
    if (want & KR_WANT_VALUE) room_binary(&c.value, rows, size);
    if (want & KR_WANT_OFFSET) c.offset = room_block(8 * rows);
    if (want & KR_WANT_TIMESTAMP) {
        c.timestamp = room_block(8 * rows);
        c.timestamp_validity = room_block(rows / 8 + 2);
        memset(c.timestamp_validity, 0xff, (size_t)(rows / 8 + 2));
    }
    if (want & KR_WANT_TIMESTAMP_MS) c.timestamp_ms = room_block(8 * rows);
    if (want & KR_WANT_CONTROL_TYPE) c.control_type = room_block(2 * rows);
    if (want & KR_WANT_HEADERS) {
        c.header_ends = room_block((rows + 1) * (int64_t)sizeof *c.header_ends);
        c.header_ends[0] = 0;
        room_binary(&c.header_key, headers, size * KR_UTF8_GROWTH);
        room_binary(&c.header_value, headers, size);
    }
    c.batch = room_block(rows * (int64_t)sizeof *c.batch);
    return c;
}

static inline void room_free(kr_columns *c) {
    void *blocks[] = {c->key.ends,
                      c->key.data,
                      c->key.validity,
                      c->value.ends,
                      c->value.data,
                      c->value.validity,
                      c->header_key.ends,
                      c->header_key.data,
                      c->header_key.validity,
                      c->header_value.ends,
                      c->header_value.data,
                      c->header_value.validity,
                      c->offset,
                      c->timestamp,
                      c->timestamp_validity,
                      c->timestamp_ms,
                      c->control_type,
                      c->header_ends,
                      c->batch};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    memset(c, 0, sizeof *c);
}

static inline int room_bit(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* Whether the bits [from, to) are all set. */
static inline int room_are_set(const uint8_t *bits, int64_t from, int64_t to) {
    for (; from < to && from & 7; from++)
        if (!room_bit(bits, from)) return 0;
    for (; from + 8 <= to; from += 8)
        if (bits[from >> 3] != 0xff) return 0;
    for (; from < to; from++)
        if (!room_bit(bits, from)) return 0;
    return 1;
}

/* Ends rise from 0, as many bits are clear as there are nulls, and nulls are empty. */
static inline void room_check_binary(const kr_binary_column *c, int64_t rows, int64_t max_rows, int64_t max_data) {
    int64_t nulls = 0, falls = 0, full_nulls = 0;
    CHECK_INT(0, c->ends[0]);
    for (int64_t i = 0; i < rows; i++) {
        int is_null = !room_bit(c->validity, i);
        falls += c->ends[i + 1] < c->ends[i];
        full_nulls += is_null && c->ends[i + 1] != c->ends[i];
        nulls += is_null;
    }
    CHECK_INT(0, falls);
    CHECK_INT(0, full_nulls);
    CHECK_TRUE(room_are_set(c->validity, rows, max_rows));
    CHECK_TRUE(c->ends[rows] <= max_data);
    CHECK_INT(c->ends[rows], c->end);
    CHECK_INT(nulls, c->nulls);
}

static inline void room_check_timestamps(const kr_columns *c, uint32_t want) {
    int64_t nulls = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        nulls += !room_bit(c->timestamp_validity, i);
        if ((want & KR_WANT_TIMESTAMP_MS) && room_bit(c->timestamp_validity, i))
            CHECK_TRUE(c->timestamp[i] / 1000 == c->timestamp_ms[i] && c->timestamp_ms[i] != -1);
    }
    CHECK_TRUE(room_are_set(c->timestamp_validity, c->rows, c->max_rows));
    CHECK_INT(nulls, c->timestamp_nulls);
}

static inline void room_check_headers(const kr_columns *c) {
    CHECK_INT(0, c->header_ends[0]);
    for (int64_t i = 0; i < c->rows; i++) CHECK_TRUE(c->header_ends[i] <= c->header_ends[i + 1]);
    CHECK_INT(c->headers, c->header_ends[c->rows]);
    room_check_binary(&c->header_key, c->headers, c->max_headers, c->max_bytes * KR_UTF8_GROWTH);
    room_check_binary(&c->header_value, c->headers, c->max_headers, c->max_bytes);
    CHECK_INT(0, c->header_key.nulls);
    const uint8_t *p = c->header_key.data, *end = p + c->header_key.ends[c->headers];
    while (p < end) {
        int length = kr_utf8_sequence(p, end);
        CHECK_TRUE(length > 0);
        p += length > 0 ? length : 1;
    }
}

/* All that must hold whatever was decoded. */
static inline void room_check(const kr_columns *c, uint32_t want) {
    CHECK_TRUE(c->rows <= c->max_rows && c->batches <= c->max_batches && c->bytes <= c->max_bytes);
    if (want & KR_WANT_KEY) room_check_binary(&c->key, c->rows, c->max_rows, c->max_bytes);
    if (want & KR_WANT_VALUE) room_check_binary(&c->value, c->rows, c->max_rows, c->max_bytes);
    if (want & KR_WANT_TIMESTAMP) room_check_timestamps(c, want);
    if (want & KR_WANT_HEADERS) room_check_headers(c);
    int64_t rows = 0, position = -1;
    for (int64_t i = 0; i < c->batches; i++) {
        CHECK_TRUE(c->batch[i].rows > 0 && c->batch[i].position > position);
        position = c->batch[i].position;
        rows += c->batch[i].rows;
    }
    CHECK_INT(c->rows, rows);
}

#endif
