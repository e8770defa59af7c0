/* Columns of exactly the size that record/columns.h asks for, each in a heap block of its own, and a check of what is
 * in them. */
#ifndef KRAFTLOG_TESTS_ROOM_H
#define KRAFTLOG_TESTS_ROOM_H

#include "check.h"
#include "record/columns.h"
#include "text/utf8.h"

static inline void *room_block(int64_t size) {
    void *p = malloc((size_t)(size > 0 ? size : 1));
    if (!p) abort();
    return p;
}

static inline uint8_t *room_bits(int64_t rows) {
    uint8_t *bits = room_block(rows / 8 + 2);
    memset(bits, 0xff, (size_t)(rows / 8 + 2));
    return bits;
}

static inline int32_t *room_ends(int64_t rows) {
    int32_t *ends = room_block((rows + 1) * (int64_t)sizeof *ends);
    ends[0] = 0;
    return ends;
}

static inline kr_binary_column room_values(int64_t rows, int64_t data) {
    return (kr_binary_column){
        .ends = room_ends(rows), .data = room_block(data + KR_PADDING), .validity = room_bits(rows)};
}

/* A column of each kind, with room for what the limits allow. */
static inline void room_make_binary(kr_binary_column *c, const kr_columns *of) {
    *c = room_values(of->max_rows, of->max_bytes);
}
static inline void room_make_int64(kr_int64_column *c, const kr_columns *of) { *c = room_block(8 * of->max_rows); }
static inline void room_make_int16(kr_int16_column *c, const kr_columns *of) { *c = room_block(2 * of->max_rows); }
static inline void room_make_nullable(kr_nullable_column *c, const kr_columns *of) {
    *c = (kr_nullable_column){.values = room_block(8 * of->max_rows), .validity = room_bits(of->max_rows)};
}
static inline void room_make_headers(kr_headers_column *c, const kr_columns *of) {
    *c = (kr_headers_column){.ends = room_ends(of->max_rows),
                             .key = room_values(of->max_headers, of->max_bytes * KR_UTF8_GROWTH),
                             .value = room_values(of->max_headers, of->max_bytes)};
}

static inline kr_columns room_make(int64_t rows, int64_t size, int64_t headers, uint32_t want) {
    kr_columns c = {.max_rows = rows, .max_bytes = size, .max_headers = headers, .max_batches = rows};
#define X(NAME, name, kind)                                                                                            \
    if (want & KR_WANT_##NAME) room_make_##kind(&c.name, &c);
    KR_COLUMN_LIST(X)
#undef X
    c.batch = room_block(rows * (int64_t)sizeof *c.batch);
    return c;
}

static inline void room_free_binary(kr_binary_column *c) {
    free(c->ends);
    free(c->data);
    free(c->validity);
}
static inline void room_free_int64(kr_int64_column *c) { free(*c); }
static inline void room_free_int16(kr_int16_column *c) { free(*c); }
static inline void room_free_nullable(kr_nullable_column *c) {
    free(c->values);
    free(c->validity);
}
static inline void room_free_headers(kr_headers_column *c) {
    free(c->ends);
    room_free_binary(&c->key);
    room_free_binary(&c->value);
}

static inline void room_free(kr_columns *c) {
#define X(NAME, name, kind) room_free_##kind(&c->name);
    KR_COLUMN_LIST(X)
#undef X
    free(c->batch);
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
        nulls += !room_bit(c->timestamp.validity, i);
        if ((want & KR_WANT_TIMESTAMP_MS) && room_bit(c->timestamp.validity, i))
            CHECK_TRUE(c->timestamp.values[i] / 1000 == c->timestamp_ms[i] && c->timestamp_ms[i] != -1);
    }
    CHECK_TRUE(room_are_set(c->timestamp.validity, c->rows, c->max_rows));
    CHECK_INT(nulls, c->timestamp.nulls);
}

static inline void room_check_headers(const kr_columns *c) {
    CHECK_INT(0, c->headers.ends[0]);
    for (int64_t i = 0; i < c->rows; i++) CHECK_TRUE(c->headers.ends[i] <= c->headers.ends[i + 1]);
    CHECK_INT(c->headers.count, c->headers.ends[c->rows]);
    room_check_binary(&c->headers.key, c->headers.count, c->max_headers, c->max_bytes * KR_UTF8_GROWTH);
    room_check_binary(&c->headers.value, c->headers.count, c->max_headers, c->max_bytes);
    CHECK_INT(0, c->headers.key.nulls);
    const uint8_t *p = c->headers.key.data, *end = p + c->headers.key.ends[c->headers.count];
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
