/* A record of a batch of magic 2.
 *
 *   length            varint   bytes behind this field
 *   attributes        int8     unused
 *   timestamp_delta   varlong
 *   offset_delta      varint
 *   key_length        varint   below 0: null
 *   key
 *   value_length      varint   below 0: null
 *   value
 *   headers_count     varint
 *   headers           header_key_length varint, header_key, header_value_length varint (below 0: null), header_value
 *
 * Two parsers read it: kr_record_fast, which says "no" to anything that it cannot vouch for, and kr_record_read, which
 * judges what the first one refused and says what is wrong and where.
 */
#ifndef KRAFTLOG_BATCH_RECORD_H
#define KRAFTLOG_BATCH_RECORD_H

#include "base/copy.h"
#include "base/reader.h"

typedef struct {
    int64_t timestamp_delta;
    int32_t offset_delta;
    int32_t key_length, value_length;
    int32_t headers_count;
    const uint8_t *key, *value, *headers;
    const uint8_t *end;
} kr_record;

/* Bytes of a key, a value or a part of a header, its length included; below 0 it is null. */
KR_ALWAYS_INLINE int64_t kr_field_size(int64_t length) {
    return kr_varint_size((int32_t)length) + (length > 0 ? length : 0);
}

/* The fields between length and key, without a bounds check: the caller has made sure that they can be read, however
 * long they are. Returns where the key starts, or NULL. */
KR_ALWAYS_INLINE const uint8_t *kr_record_begin(const uint8_t *p, kr_record *r) {
    return (p = kr_varlong_unchecked(p + 1, &r->timestamp_delta)) && (p = kr_varint_unchecked(p, &r->offset_delta))
               ? kr_varint_unchecked(p, &r->key_length)
               : 0;
}

/* Reads the record at p if it is well-formed up to its headers and ends at `end` or before. KR_PADDING bytes behind
 * `end` can be read. */
KR_ALWAYS_INLINE int kr_record_fast(const uint8_t *p, const uint8_t *end, kr_record *r) {
    int32_t length;
    if (p >= end || !(p = kr_varint_unchecked(p, &length)) || length < 0 || length > end - p) return 0;
    const uint8_t *record_end = p + length;
    if (!(p = kr_record_begin(p, r)) || r->key_length > record_end - p) return 0;
    r->key = p;
    p += r->key_length > 0 ? r->key_length : 0;
    if (!(p = kr_varint_unchecked(p, &r->value_length)) || r->value_length > record_end - p) return 0;
    r->value = p;
    p += r->value_length > 0 ? r->value_length : 0;
    if (!(p = kr_varint_unchecked(p, &r->headers_count))) return 0;
    r->headers = p;
    r->end = record_end;
    return r->headers_count == 0 ? p == record_end : r->headers_count > 0 && r->headers_count <= record_end - p;
}

/* Whether a varint below 2^13 of so many bytes, 1 or 2, stands at p. One in two bytes may be a small number, which
 * Kafka reads as well. */
KR_ALWAYS_INLINE int kr_has_varint(const uint8_t *p, int64_t value, int bytes) {
    if (bytes == 1) return p[0] == 2 * value;
    return p[0] == ((2 * value & 0x7f) | 0x80) && p[1] == value >> 6;
}

/* How many bytes a length takes that counts the rest of `left` bytes, which it begins. The number itself does not tell:
 * of 65 bytes 63 would be left behind two, and one byte is what 63 takes. */
KR_ALWAYS_INLINE int kr_length_bytes(int64_t left) { return left <= 1 << 6 ? 1 : 2; }

/* Reads the record that fills [p, end), if it is what nearly all records of a metadata log are: with a value, without a
 * key and headers, at the offset and the time of its batch. How long it is says where everything stands. KR_PADDING
 * bytes behind `end` can be read. */
KR_ALWAYS_INLINE int kr_record_alone(const uint8_t *p, const uint8_t *end, kr_record *r) {
    static const uint8_t front[4] = {0, 0, 0, 1}; /* attributes, timestamp_delta, offset_delta, key_length */
    const int length_bytes = kr_length_bytes(end - p);
    int64_t length = end - p - length_bytes;
    if (KR_UNLIKELY(length >= 1 << 13 || !kr_has_varint(p, length, length_bytes))) return 0;
    const uint8_t *body = end - length;
    int64_t left = length - (int64_t)sizeof front - 1;
    const int value_bytes = kr_length_bytes(left);
    int64_t value = left - value_bytes;
    if (KR_UNLIKELY(value < 0 || memcmp(body, front, sizeof front) != 0)) return 0;
    if (KR_UNLIKELY(!kr_has_varint(body + sizeof front, value, value_bytes) || end[-1] != 0)) return 0;
    r->timestamp_delta = 0;
    r->offset_delta = 0;
    r->key_length = -1;
    r->value_length = (int32_t)value;
    r->headers_count = 0;
    r->key = body + sizeof front;
    r->value = end - 1 - value;
    r->headers = r->end = end;
    return 1;
}

/* One header at p of a record that ends at `end`, by the rules of kr_record_fast. Returns the byte behind, or NULL. */
KR_ALWAYS_INLINE const uint8_t *kr_header_fast(const uint8_t *p, const uint8_t *end, const uint8_t **key,
                                               int32_t *key_length, const uint8_t **value, int32_t *value_length) {
    if (!(p = kr_varint_unchecked(p, key_length)) || *key_length < 0 || *key_length > end - p) return 0;
    *key = p;
    p += *key_length;
    if (!(p = kr_varint_unchecked(p, value_length)) || *value_length > end - p) return 0;
    *value = p;
    return p + (*value_length > 0 ? *value_length : 0);
}

/* Reads the record at `in->pos` with every check. Afterwards r->end is the end that its length declares, or NULL when
 * the length itself is bad. */
static inline void kr_record_read(kr_reader *in, kr_record *r) {
    r->end = 0;
    int32_t length = kr_read_varint(in), ignored;
    if (in->error.status != KR_OK) return;
    if (length < 0 || length > kr_left(in)) {
        kr_reader_fail(in, KR_BAD_RECORD_LENGTH, kr_left(in), length);
        return;
    }
    const uint8_t *body = in->pos;
    r->end = body + length;
    in->end = r->end;
    kr_read_int8(in);
    r->timestamp_delta = kr_read_varlong(in);
    r->offset_delta = kr_read_varint(in);
    r->key = kr_read_nullable(in, &r->key_length, KR_BAD_KEY_LENGTH);
    r->value = kr_read_nullable(in, &r->value_length, KR_BAD_VALUE_LENGTH);
    r->headers_count = kr_read_varint(in);
    if (in->error.status == KR_OK && (r->headers_count < 0 || r->headers_count > kr_left(in)))
        kr_reader_fail(in, KR_BAD_HEADERS_COUNT, kr_left(in), r->headers_count);
    r->headers = in->pos;
    for (int32_t i = 0; i < r->headers_count && in->error.status == KR_OK; i++) {
        kr_take_or(in, kr_read_varint(in), KR_BAD_HEADER_KEY_LENGTH);
        kr_read_nullable(in, &ignored, KR_BAD_HEADER_VALUE_LENGTH);
    }
    if (in->error.status == KR_OK && in->pos != r->end) kr_reader_fail(in, KR_BAD_RECORD_SIZE, length, in->pos - body);
}

/* Whether `count` well-formed records fill [p, end) exactly: then a bad record before them can be left out alone. */
static inline int kr_rest_is_sound(const uint8_t *p, const uint8_t *end, int64_t count) {
    kr_record r;
    for (; count > 0 && p < end; count--) {
        kr_reader in = kr_reader_make(p, p, end);
        kr_record_read(&in, &r);
        if (in.error.status != KR_OK) return 0;
        p = r.end;
    }
    return count == 0 && p == end;
}

#endif
