/* Records with other keys, values and headers. Attributes, timestamp and offset of each stay. */
#ifndef KRAFTLOG_CLEANING_REWRITTEN_RECORDS_H
#define KRAFTLOG_CLEANING_REWRITTEN_RECORDS_H

#include "base/growing.h"
#include "batch/record.h"

/* A key, a value, or a part of a header; null with a size below 0. */
typedef struct {
    const uint8_t *bytes;
    int64_t size;
} kr_content;

typedef struct {
    kr_record fields;
    uint8_t attributes;
} kr_whole_record;

/* Reads the record at p. Returns where it ends, or NULL when it is not sound. */
static inline const uint8_t *kr_whole_record_read(const uint8_t *p, const uint8_t *end, kr_whole_record *r) {
    uint64_t length;
    kr_reader in = kr_reader_make(p, p, end);
    kr_record_read(&in, &r->fields);
    if (in.error.status != KR_OK) return 0;
    r->attributes = *kr_uvarint(p, end, KR_VARINT_MAX, &length);
    return r->fields.end;
}

static inline uint8_t *kr_content_put(uint8_t *to, const kr_content *c) {
    to = kr_put_varint(to, (int32_t)c->size);
    if (c->size <= 0) return to;
    memcpy(to, c->bytes, (size_t)c->size);
    return to + c->size;
}

/* Appends a record with other contents: key and value, then a name and a value for each of the headers. Returns 0 when
 * it would be larger than a record can be, or memory is short. */
static int kr_record_rewrite(kr_growing *out, const kr_whole_record *r, const kr_content *contents, int32_t headers) {
    const int64_t count = 2 + 2 * (int64_t)headers;
    int64_t body = 1 + kr_varlong_size(r->fields.timestamp_delta) + kr_varint_size(r->fields.offset_delta) +
                   kr_varint_size(headers);
    for (int64_t i = 0; i < count; i++) body += kr_field_size(contents[i].size);
    if (body > INT32_MAX || !kr_reserve(out, KR_VARINT_MAX + body)) return 0;
    uint8_t *to = kr_put_varint(out->bytes + out->size, (int32_t)body);
    *to++ = r->attributes;
    to = kr_put_varlong(to, r->fields.timestamp_delta);
    to = kr_put_varint(to, r->fields.offset_delta);
    for (int64_t i = 0; i < count; i++) {
        if (i == 2) to = kr_put_varint(to, headers);
        to = kr_content_put(to, &contents[i]);
    }
    if (!headers) to = kr_put_varint(to, 0);
    out->size = to - out->bytes;
    return 1;
}

#endif
