/* The records of one batch of magic 2, walked once: checked, and put into columns.
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
 * Two parsers read a record: kr_record_fast for what nearly all records are, which says "no" to anything odd, and
 * kr_record_read, which judges what the first one refused and says what is wrong and where.
 */
#ifndef KRAFTLOG_RECORD_H
#define KRAFTLOG_RECORD_H

#include "columns.h"
#include "reader.h"
#include "utf8.h"

#define KR_LIKELY(x) __builtin_expect(!!(x), 1)
#define KR_ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
    int64_t timestamp_delta;
    int32_t offset_delta;
    int32_t key_length, value_length;
    int32_t headers_count;
    const uint8_t *key, *value, *headers;
    const uint8_t *end;
} kr_record;

/* A checksum that runs ahead of the walk, a window at a time, so that the walk finds its bytes in the first-level
 * cache. Nothing that was put out counts before the sum over the whole batch has been compared. */
typedef struct {
    const uint8_t *pos, *end;
    uint32_t crc;
} kr_crc_ahead;

enum { KR_CRC_WINDOW = 16 * 768 };

static inline void kr_crc_advance(kr_crc_ahead *a) {
    int64_t n = a->end - a->pos;
    if (n > KR_CRC_WINDOW + KR_CRC_WINDOW / 2) n = KR_CRC_WINDOW;
    a->crc = kr_crc32c(a->crc, a->pos, (size_t)n);
    a->pos += n;
}

/* Reads the record at p if it is well-formed and KR_PADDING bytes behind its last field can be read. */
KR_ALWAYS_INLINE int kr_record_fast(const uint8_t *p, const uint8_t *end, const uint8_t *padded_end, kr_record *r) {
    int32_t length;
    if (p >= padded_end || !(p = kr_varint_unchecked(p, &length)) || length < 0 || length > end - p) return 0;
    const uint8_t *record_end = p + length;
    if (!(p = kr_varlong_unchecked(p + 1, &r->timestamp_delta)) || !(p = kr_varint_unchecked(p, &r->offset_delta)) ||
        !(p = kr_varint_unchecked(p, &r->key_length)) || r->key_length > record_end - p)
        return 0;
    r->key = p;
    p += r->key_length > 0 ? r->key_length : 0;
    if (p >= padded_end || !(p = kr_varint_unchecked(p, &r->value_length)) || r->value_length > record_end - p) return 0;
    r->value = p;
    p += r->value_length > 0 ? r->value_length : 0;
    if (p >= padded_end || !(p = kr_varint_unchecked(p, &r->headers_count))) return 0;
    r->headers = p;
    r->end = record_end;
    return r->headers_count == 0 ? p == record_end : r->headers_count > 0 && r->headers_count <= record_end - p;
}

/* Reads headers, and puts them into columns when c is given. The reader stands behind headers_count. */
static inline void kr_headers_read(kr_reader *in, int32_t count, kr_columns *c) {
    for (int32_t i = 0; i < count && in->error.status == KR_OK; i++) {
        int32_t key_length = kr_read_varint(in), value_length;
        const uint8_t *key = kr_take_or(in, key_length, KR_BAD_HEADER_KEY_LENGTH);
        const uint8_t *value = kr_read_nullable(in, &value_length, KR_BAD_HEADER_VALUE_LENGTH);
        if (!c || in->error.status != KR_OK) continue;
        int32_t begin = c->header_key.ends[c->headers];
        c->header_key.ends[c->headers + 1] = begin + (int32_t)kr_copy_utf8(c->header_key.data + begin, key, key_length);
        kr_put_binary(&c->header_value, c->headers, value, value_length, 0);
        c->headers++;
    }
}

/* Reads the record at `in->pos` with every check. Afterwards r->end is the end that its length declares, or NULL when
 * the length itself is bad. */
static inline void kr_record_read(kr_reader *in, kr_record *r) {
    r->end = 0;
    int32_t length = kr_read_varint(in);
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
    kr_headers_read(in, r->headers_count, 0);
    if (in->error.status == KR_OK && in->pos != r->end)
        kr_reader_fail(in, KR_BAD_RECORD_SIZE, length, in->pos - body);
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

static inline int16_t kr_control_type_of(const kr_record *r) {
    return r->key_length >= 4 ? kr_load_int16(r->key + 2) : KR_NO_CONTROL_TYPE;
}

KR_ALWAYS_INLINE void kr_record_put(kr_columns *c, const kr_batch_header *h, const kr_record *r, int padded,
                                    const uint32_t want) {
    int64_t row = c->rows;
    if (want & KR_WANT_KEY) kr_put_binary(&c->key, row, r->key, r->key_length, padded);
    if (want & KR_WANT_VALUE) kr_put_binary(&c->value, row, r->value, r->value_length, padded);
    if (want & KR_WANT_OFFSET) c->offset[row] = kr_add_wrapping(h->base_offset, r->offset_delta);
    if (want & (KR_WANT_TIMESTAMP | KR_WANT_TIMESTAMP_MS)) {
        int64_t ms = h->attributes & KR_TIMESTAMP_TYPE_BIT ? h->max_timestamp
                                                          : kr_add_wrapping(h->base_timestamp, r->timestamp_delta);
        if (want & KR_WANT_TIMESTAMP) kr_put_timestamp(c, row, ms);
        if (want & KR_WANT_TIMESTAMP_MS) c->timestamp_ms[row] = ms;
    }
    if (want & KR_WANT_CONTROL_TYPE)
        c->control_type[row] = kr_is_control(h) ? kr_control_type_of(r) : KR_NO_CONTROL_TYPE;
    if (want & KR_WANT_HEADERS) {
        if (r->headers_count) {
            kr_reader in = kr_reader_make(r->headers, r->headers, r->end);
            kr_headers_read(&in, r->headers_count, c);
        }
        c->header_ends[row + 1] = (int32_t)c->headers;
    }
    c->rows = row + 1;
}

/* Walks the records in [p, end); `readable_end` is where the buffer they lie in ends. Positions in faults count from
 * `start`. KR_OK; KR_NEEDS_ROOM when the header columns are full (the caller takes the rows back); or the fault of the
 * first bad record, with the rows before it, and those behind it if they are sound, kept. */
KR_ALWAYS_INLINE int kr_records_walk(kr_columns *c, const kr_batch_header *h, const uint8_t *start, const uint8_t *p,
                                     const uint8_t *end, const uint8_t *readable_end, kr_crc_ahead *ahead, kr_error *e,
                                     const uint32_t want) {
    const uint8_t *padded_end = readable_end - KR_PADDING;
    int32_t count = h->records_count;
    int status = KR_OK;
    kr_columns local = *c; /* so that stores through its pointers need not be thought to change it */
    for (int32_t i = 0; i < count; i++) {
        kr_record r;
        if (p >= ahead->pos && ahead->pos < ahead->end) kr_crc_advance(ahead);
        int padded = kr_record_fast(p, end, padded_end, &r);
        if (!KR_LIKELY(padded && (r.headers_count == 0))) {
            if (p >= end) {
                if (status == KR_OK) status = kr_fail(e, KR_MISSING_RECORDS, p - start, count, i);
                break;
            }
            kr_reader in = kr_reader_make(start, p, end);
            kr_record_read(&in, &r);
            if (in.error.status != KR_OK) {
                status = in.error.status;
                *e = in.error;
                e->record_index = i;
                e->lost = end - p;
                if (!r.end || !kr_rest_is_sound(r.end, end, (int64_t)count - i - 1)) goto done;
                e->lost = r.end - p;
                p = r.end;
                continue;
            }
            if ((want & KR_WANT_HEADERS) && local.headers + r.headers_count > local.max_headers) {
                status = KR_NEEDS_ROOM;
                goto done;
            }
        }
        kr_record_put(&local, h, &r, padded, want);
        p = r.end;
    }
    if (status == KR_OK && p < end) {
        status = kr_fail(e, KR_TRAILING_BYTES, p - start, count, end - p);
        e->lost = end - p;
    }
done:
    *c = local;
    return status;
}

#define KR_WANT_COMMON (KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET | KR_WANT_TIMESTAMP)

static inline int kr_records_decode(kr_columns *c, const kr_batch_header *h, const uint8_t *start, const uint8_t *p,
                                    const uint8_t *end, const uint8_t *readable_end, kr_crc_ahead *ahead, kr_error *e,
                                    uint32_t want) {
    switch (want) { /* the usual sets get a loop of their own */
    case KR_WANT_COMMON:
        return kr_records_walk(c, h, start, p, end, readable_end, ahead, e, KR_WANT_COMMON);
    case KR_WANT_COMMON | KR_WANT_HEADERS:
        return kr_records_walk(c, h, start, p, end, readable_end, ahead, e, KR_WANT_COMMON | KR_WANT_HEADERS);
    default:
        return kr_records_walk(c, h, start, p, end, readable_end, ahead, e, want);
    }
}

#endif
