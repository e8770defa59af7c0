/* Messages of magic 0 and 1 (layout: batch/batch.h), read only.
 *
 * A compressed wrapper's value holds further messages, none of them compressed, each with a crc of its own. In a
 * wrapper of magic 1 they carry offsets relative to each other, the last one standing for the wrapper's own offset; in
 * one of magic 0 they are absolute. A wrapper whose timestamp type is LogAppendTime gives its timestamp to the messages
 * of magic 1 that it holds. Kafka's AbstractLegacyRecordBatch has these rules.
 */
#ifndef KRAFTLOG_RECORD_LEGACY_H
#define KRAFTLOG_RECORD_LEGACY_H

#include "record/walk.h"

enum { KR_LEGACY_MAX_MAGIC = 1, KR_LAST_LEGACY_COMPRESSION = KR_LAST_COMPRESSION - 1 /* zstd came later */ };

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
    r->headers = 0;
    r->headers_count = 0;
}

KR_ALWAYS_INLINE void kr_legacy_put(kr_columns *c, int64_t offset, int64_t timestamp, kr_record *r, uint32_t want) {
    kr_batch_header plain = {0};
    plain.base_offset = offset;
    plain.base_timestamp = timestamp;
    r->timestamp_delta = 0;
    kr_record_put(c, &plain, r, 0, want);
}

/* The message with header h, whole and not compressed. */
KR_ALWAYS_INLINE int kr_legacy_decode(kr_columns *c, const kr_batch_header *h, const uint8_t *start, kr_error *e,
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

/* One inner message. */
typedef struct {
    int64_t offset;
    int8_t magic;
    kr_record record;
    kr_error error;
} kr_inner;

/* Checks what stands before the key: `message` is the reader behind the attributes, cut to the message. */
static inline void kr_inner_check(kr_reader *message, kr_inner *m, const kr_batch_header *wrapper, int check_crc) {
    const uint8_t *body = message->pos; /* where the crc stands */
    uint32_t crc = check_crc ? kr_crc32(0, body + 4, (size_t)(message->end - body - 4)) : 0;
    int8_t attributes = (int8_t)body[KR_LEGACY_ATTRIBUTES_AT - KR_LOG_OVERHEAD];
    m->magic = (int8_t)body[KR_MAGIC_AT - KR_LOG_OVERHEAD];
    if (m->magic < 0 || m->magic > KR_LEGACY_MAX_MAGIC)
        kr_reader_fail(message, KR_BAD_INNER_MAGIC, wrapper->magic, m->magic);
    if (check_crc && crc != kr_load_uint32(body)) kr_reader_fail(message, KR_BAD_INNER_CRC, kr_load_uint32(body), crc);
    if (attributes & KR_COMPRESSION_MASK)
        kr_reader_fail(message, KR_NESTED_COMPRESSION, 0, attributes & KR_COMPRESSION_MASK);
    kr_take(message, KR_LEGACY_ATTRIBUTES_AT + 1 - KR_LOG_OVERHEAD);
}

/* Reads the message at `in->pos`. Returns where it ends; NULL when that cannot be said. */
static inline const uint8_t *kr_inner_read(kr_reader *in, kr_inner *m, const kr_batch_header *wrapper, int check_crc) {
    m->offset = kr_read_int64(in);
    int32_t size = kr_read_int32(in);
    if (in->error.status == KR_OK && (size < KR_LEGACY_MIN_LENGTH_V0 || size > kr_left(in)))
        kr_reader_fail(in, KR_BAD_RECORD_LENGTH, kr_left(in), size);
    const uint8_t *body = kr_take(in, size);
    m->error = in->error;
    if (!body) return 0;
    kr_reader message = kr_reader_make(in->start, body, in->pos);
    kr_inner_check(&message, m, wrapper, check_crc);
    kr_legacy_read(&message, m->magic, &m->record);
    m->error = message.error;
    return in->pos;
}

static inline int kr_inner_rest_is_sound(kr_reader in, const kr_batch_header *wrapper, int check_crc) {
    kr_inner m;
    while (in.pos < in.end)
        if (!kr_inner_read(&in, &m, wrapper, check_crc) || m.error.status != KR_OK) return 0;
    return 1;
}

/* What to add to an inner offset: the last whole message has that of the wrapper. librdkafka once sent wrappers with
 * offset 0, which then says nothing. Fails where Kafka returns no message at all. */
static inline int kr_inner_base(const kr_batch_header *wrapper, const uint8_t *data, const uint8_t *end, int64_t *base,
                                kr_error *e) {
    const uint8_t *p = data;
    int64_t last = INT64_MIN;
    int status = KR_OK;
    while (end - p >= KR_LOG_OVERHEAD) {
        int64_t size = kr_load_int32(p + KR_LENGTH_AT), left = end - p - KR_LOG_OVERHEAD;
        if (size < KR_LEGACY_MIN_LENGTH_V0) return kr_fail(e, KR_BAD_RECORD_LENGTH, 0, left, size);
        if (size > left) break;
        last = kr_load_int64(p);
        p += KR_LOG_OVERHEAD + size;
    }
    *base = 0;
    if (data == end) status = kr_fail(e, KR_EMPTY_WRAPPER, 0, 1, 0);
    if (p == data || wrapper->magic == 0 || wrapper->base_offset == 0) return status;
    if (wrapper->base_offset < last) return kr_fail(e, KR_BAD_WRAPPER_OFFSET, 0, last, wrapper->base_offset);
    *base = (int64_t)((uint64_t)wrapper->base_offset - (uint64_t)last);
    return KR_OK;
}

/* The messages inside a wrapper, decompressed into [data, end). A bad one is left out alone if those behind it are
 * sound; else, and if `strict`, it ends the wrapper. */
static inline int kr_inner_decode(kr_columns *c, const kr_batch_header *wrapper, const uint8_t *data,
                                  const uint8_t *end, int check_crc, int strict, kr_error *e, uint32_t want) {
    int64_t base;
    int status = kr_inner_base(wrapper, data, end, &base, e);
    int is_append_time = wrapper->attributes & KR_TIMESTAMP_TYPE_BIT && wrapper->magic == 1;
    kr_reader in = kr_reader_make(data, data, end);
    if (status != KR_OK) { /* the fault is the wrapper's */
        e->position = wrapper->position;
        e->lost = kr_batch_end(wrapper) - wrapper->position;
        return status;
    }
    for (int32_t i = 0; in.pos < in.end; i++) {
        const uint8_t *begin = in.pos;
        kr_inner m;
        const uint8_t *behind = kr_inner_read(&in, &m, wrapper, check_crc);
        if (m.error.status != KR_OK) {
            int is_alone = behind && kr_inner_rest_is_sound(in, wrapper, check_crc);
            status = m.error.status;
            *e = m.error;
            e->record_index = i;
            e->lost = (is_alone ? behind : end) - begin;
            if (!is_alone || strict) return status;
            continue;
        }
        int64_t timestamp = is_append_time && m.magic == 1 ? wrapper->base_timestamp : m.record.timestamp_delta;
        kr_legacy_put(c, kr_add_wrapping(base, m.offset), timestamp, &m.record, want);
    }
    return status;
}

#endif
