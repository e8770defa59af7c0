/* Bytes made by hand: varints, records and batches, written in the plainest way and without the code under test. */
#ifndef KRAFTLOG_TESTS_BYTES_H
#define KRAFTLOG_TESTS_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"

enum { BYTES_CAPACITY = 1 << 16 };

typedef struct {
    int64_t size;
    uint8_t at[BYTES_CAPACITY];
} bytes;

static inline void put_bytes(bytes *b, const void *p, int64_t n) {
    if (n > BYTES_CAPACITY - b->size) abort();
    if (n <= 0) return;
    memcpy(b->at + b->size, p, (size_t)n);
    b->size += n;
}

static inline void put_fill(bytes *b, int value, int64_t n) {
    for (uint8_t byte = (uint8_t)value; n > 0; n--) put_bytes(b, &byte, 1);
}

static inline void set_big_endian(uint8_t *p, int64_t value, int width) {
    for (int i = 0; i < width; i++) p[i] = (uint8_t)((uint64_t)value >> (8 * (width - 1 - i)));
}

static inline void put_int(bytes *b, int64_t value, int width) {
    uint8_t p[8];
    set_big_endian(p, value, width);
    put_bytes(b, p, width);
}

/* Both varints and varlongs: a value has the same shortest form in either. */
static inline void put_varint(bytes *b, int64_t value) {
    uint64_t x = ((uint64_t)value << 1) ^ (value < 0 ? ~0ull : 0ull);
    for (; x > 0x7f; x >>= 7) put_fill(b, (int)(x & 0x7f) | 0x80, 1);
    put_fill(b, (int)x, 1);
}

/* A length and as many bytes; below 0 the length alone. */
static inline void put_field(bytes *b, const void *p, int64_t n) {
    put_varint(b, n);
    put_bytes(b, p, n);
}

static inline void put_text(bytes *b, const char *text) { put_field(b, text, text ? (int64_t)strlen(text) : -1); }

static inline void put_hex(bytes *b, const char *hex) {
    for (; *hex; hex += hex[0] == ' ' ? 1 : 2) {
        if (*hex == ' ') continue;
        char digits[3] = {hex[0], hex[1], 0};
        put_fill(b, (int)strtol(digits, 0, 16), 1);
    }
}

/* A record around `fields`, which begin behind its length. */
static inline void put_record_of(bytes *b, const bytes *fields) { put_field(b, fields->at, fields->size); }

/* A record; `headers` holds keys and values in turn and ends with a NULL key. NULL for none. */
static inline void put_record(bytes *b, int64_t timestamp_delta, int32_t offset_delta, const char *key,
                              const char *value, const char *const *headers) {
    static bytes fields;
    int count = 0;
    while (headers && headers[2 * count]) count++;
    fields.size = 0;
    put_fill(&fields, 0, 1);
    put_varint(&fields, timestamp_delta);
    put_varint(&fields, offset_delta);
    put_text(&fields, key);
    put_text(&fields, value);
    put_varint(&fields, count);
    for (int i = 0; i < 2 * count; i++) put_text(&fields, headers[i]);
    put_record_of(b, &fields);
}

/* Length and CRC of the batch of magic 2 that starts at `at` and ends where the bytes end. */
static inline void seal(bytes *b, int64_t at) {
    uint8_t *p = b->at + at;
    set_big_endian(p + 8, b->size - at - 12, 4);
    set_big_endian(p + 17, kr_crc32c_portable(0, p + 21, (size_t)(b->size - at - 21)), 4);
}

/* A batch of magic 2 around records. Returns where it starts. */
static inline int64_t put_batch(bytes *b, int64_t base_offset, int attributes, int64_t base_timestamp, int32_t count,
                                const bytes *records) {
    int64_t at = b->size;
    put_int(b, base_offset, 8);
    put_int(b, 0, 4); /* batch_length */
    put_int(b, 5, 4); /* partition_leader_epoch */
    put_int(b, 2, 1); /* magic */
    put_int(b, 0, 4); /* crc */
    put_int(b, attributes, 2);
    put_int(b, count > 0 ? count - 1 : 0, 4); /* last_offset_delta */
    put_int(b, base_timestamp, 8);
    put_int(b, base_timestamp + 9, 8); /* max_timestamp */
    put_int(b, 77, 8);                 /* producer_id */
    put_int(b, 3, 2);                  /* producer_epoch */
    put_int(b, 11, 4);                 /* base_sequence */
    put_int(b, count, 4);
    put_bytes(b, records->at, records->size);
    seal(b, at);
    return at;
}

/* A batch of `count` small records, told apart by their offsets. */
static inline int64_t put_small_batch(bytes *b, int64_t base_offset, int32_t count) {
    static bytes records;
    records.size = 0;
    for (int32_t i = 0; i < count; i++) put_record(&records, i, i, "key", "value", 0);
    return put_batch(b, base_offset, 0, 1000, count, &records);
}

/* A message of magic 0 or 1. Returns where it starts. */
static inline int64_t put_message(bytes *b, int magic, int64_t offset, int attributes, int64_t timestamp,
                                  const void *key, int64_t key_length, const void *value, int64_t value_length) {
    int64_t at = b->size;
    put_int(b, offset, 8);
    put_int(b, 0, 4); /* size */
    put_int(b, 0, 4); /* crc */
    put_int(b, magic, 1);
    put_int(b, attributes, 1);
    if (magic == 1) put_int(b, timestamp, 8);
    put_int(b, key_length, 4);
    put_bytes(b, key, key_length);
    put_int(b, value_length, 4);
    put_bytes(b, value, value_length);
    set_big_endian(b->at + at + 8, b->size - at - 12, 4);
    set_big_endian(b->at + at + 12, kr_crc32(0, b->at + at + 16, (size_t)(b->size - at - 16)), 4);
    return at;
}

/* A copy in a heap block that ends where the bytes end, so that AddressSanitizer sees any read behind them. */
static inline uint8_t *exact_copy(const uint8_t *p, int64_t n) {
    uint8_t *copy = malloc((size_t)(n ? n : 1));
    if (!copy) abort();
    if (n) memcpy(copy, p, (size_t)n);
    return copy + (n ? 0 : 1);
}

static inline void exact_free(uint8_t *p, int64_t n) { free(p - (n ? 0 : 1)); }

#endif
