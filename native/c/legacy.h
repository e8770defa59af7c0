/* Messages of magic 0 and 1 (layout: batch.h), read only.
 *
 * A compressed wrapper's value holds further messages. In a wrapper of magic 1 they carry offsets relative to each
 * other, the last one standing for the wrapper's own offset; in one of magic 0 they are absolute. A wrapper whose
 * timestamp type is LogAppendTime gives its timestamp to all that it holds.
 */
#ifndef KRAFTLOG_LEGACY_H
#define KRAFTLOG_LEGACY_H

#include "record_walk.h"

enum { KR_LEGACY_MAX_MAGIC = 1 };

static inline const uint8_t *kr_legacy_field(kr_reader *in, int32_t *length, int status) {
    *length = kr_read_int32(in);
    if (*length < 0 || in->error.status != KR_OK) {
        *length = -1;
        return 0;
    }
    return kr_take_or(in, *length, status);
}

/* Key and value of the message whose fields behind the attributes start at `in->pos`. */
static inline void kr_legacy_read(kr_reader *in, int8_t magic, kr_record *r) {
    r->timestamp_delta = magic == 1 ? kr_read_int64(in) : -1;
    r->key = kr_legacy_field(in, &r->key_length, KR_BAD_KEY_LENGTH);
    r->value = kr_legacy_field(in, &r->value_length, KR_BAD_VALUE_LENGTH);
    r->offset_delta = 0;
    r->headers_count = 0;
}

static inline void kr_legacy_put(kr_columns *c, int64_t offset, int64_t timestamp, kr_record *r, uint32_t want) {
    kr_batch_header plain = {0};
    plain.base_offset = offset;
    plain.base_timestamp = timestamp;
    r->timestamp_delta = 0;
    kr_record_put(c, &plain, r, 0, want);
}

/* The message with header h, whole and not compressed. */
static inline int kr_legacy_decode(kr_columns *c, const kr_batch_header *h, const uint8_t *start, kr_error *e,
                                   uint32_t want) {
    kr_record r;
    kr_reader in = kr_reader_make(start, start + h->position + KR_LEGACY_ATTRIBUTES_AT + 1, start + kr_batch_end(h));
    kr_legacy_read(&in, h->magic, &r);
    if (in.error.status != KR_OK) {
        *e = in.error;
        e->record_index = 0;
        e->lost = kr_batch_end(h) - h->position;
        return in.error.status;
    }
    kr_legacy_put(c, h->base_offset, h->base_timestamp, &r, want);
    return KR_OK;
}

/* The value of a compressed wrapper. */
static inline int kr_legacy_payload(const kr_batch_header *h, const uint8_t *start, const uint8_t **payload,
                                    int64_t *size, kr_error *e) {
    kr_record r;
    kr_reader in = kr_reader_make(start, start + h->position + KR_LEGACY_ATTRIBUTES_AT + 1, start + kr_batch_end(h));
    kr_legacy_read(&in, h->magic, &r);
    if (in.error.status == KR_OK && !r.value) kr_reader_fail(&in, KR_BAD_VALUE_LENGTH, 0, r.value_length);
    *e = in.error;
    *payload = r.value;
    *size = r.value_length;
    return in.error.status;
}

/* One inner message: its offset and magic, and the reader behind its attributes, cut to its size. */
static inline kr_reader kr_inner_open(kr_reader *in, int64_t *offset, int8_t *magic, const kr_batch_header *wrapper) {
    *offset = kr_read_int64(in);
    int32_t size = kr_read_int32(in);
    if (in->error.status == KR_OK && (size < KR_LEGACY_MIN_LENGTH_V0 || size > kr_left(in)))
        kr_reader_fail(in, KR_BAD_RECORD_LENGTH, kr_left(in), size);
    const uint8_t *body = kr_take(in, size);
    kr_reader message = kr_reader_make(in->start, body, in->pos);
    message.error = in->error;
    if (!body) return message;
    *magic = (int8_t)body[KR_MAGIC_AT - KR_LOG_OVERHEAD];
    if (*magic < 0 || *magic > KR_LEGACY_MAX_MAGIC)
        kr_reader_fail(&message, KR_BAD_INNER_MAGIC, wrapper->magic, *magic);
    kr_take(&message, KR_LEGACY_ATTRIBUTES_AT + 1 - KR_LOG_OVERHEAD);
    return message;
}

/* What to add to an inner offset. librdkafka once sent wrappers with offset 0, which then says nothing. */
static inline int64_t kr_inner_base(const kr_batch_header *wrapper, const uint8_t *data, const uint8_t *end) {
    int64_t last = 0;
    if (wrapper->magic == 0 || wrapper->base_offset == 0) return 0;
    for (const uint8_t *p = data; end - p >= KR_LOG_OVERHEAD;) {
        int64_t size = kr_load_int32(p + KR_LENGTH_AT);
        last = kr_load_int64(p);
        if (size < KR_LEGACY_MIN_LENGTH_V0 || size > end - p - KR_LOG_OVERHEAD) break;
        p += KR_LOG_OVERHEAD + size;
    }
    return (int64_t)((uint64_t)wrapper->base_offset - (uint64_t)last);
}

/* The messages inside a wrapper, decompressed into [data, end). Stops at the first fault and keeps what came before. */
static inline int kr_inner_decode(kr_columns *c, const kr_batch_header *wrapper, const uint8_t *data,
                                  const uint8_t *end, kr_error *e, uint32_t want) {
    int64_t base = kr_inner_base(wrapper, data, end);
    kr_reader in = kr_reader_make(data, data, end);
    for (int32_t i = 0; in.pos < in.end; i++) {
        const uint8_t *begin = in.pos;
        int64_t offset;
        int8_t magic = 0;
        kr_record r;
        kr_reader message = kr_inner_open(&in, &offset, &magic, wrapper);
        kr_legacy_read(&message, magic, &r);
        if (message.error.status != KR_OK) {
            *e = message.error;
            e->record_index = i;
            e->lost = end - begin;
            return e->status;
        }
        int64_t timestamp = wrapper->attributes & KR_TIMESTAMP_TYPE_BIT && wrapper->magic == 1 ? wrapper->base_timestamp
                                                                                               : r.timestamp_delta;
        kr_legacy_put(c, kr_add_wrapping(base, offset), timestamp, &r, want);
    }
    return KR_OK;
}

#endif
