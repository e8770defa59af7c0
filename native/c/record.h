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
    if (p >= padded_end || !(p = kr_varint_unchecked(p, &r->value_length)) || r->value_length > record_end - p)
        return 0;
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

static inline int16_t kr_control_type_of(const kr_record *r) {
    return r->key_length >= 4 ? kr_load_int16(r->key + 2) : KR_NO_CONTROL_TYPE;
}

/* Records of the metadata log: frame version, api key and version as unsigned varints, then the message. Begin, End and
 * AbortTransactionRecord have neighbouring keys. */
enum { KR_METADATA_FRAME = 1, KR_FEATURE_LEVEL_KEY = 12, KR_FIRST_MARKER_KEY = 23, KR_LAST_MARKER_KEY = 25 };

static inline const uint8_t *kr_uvarint_read(const uint8_t *p, const uint8_t *end, uint32_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 7 * KR_VARINT_MAX && p < end; shift += 7, p++) {
        *out |= (uint32_t)(*p & 0x7f) << shift;
        if (*p < 0x80) return p + 1;
    }
    return 0;
}

KR_ALWAYS_INLINE int kr_is_marker_key(uint32_t key) { return key >= KR_FIRST_MARKER_KEY && key <= KR_LAST_MARKER_KEY; }

/* The api key of a metadata record whose varints are longer than needed; 0, which is that of no record of use here, for
 * what is no metadata record. */
static inline uint32_t kr_odd_api_key(const uint8_t *p, const uint8_t *end) {
    uint32_t frame, key;
    return (p = kr_uvarint_read(p, end, &frame)) && frame == KR_METADATA_FRAME && kr_uvarint_read(p, end, &key) ? key
                                                                                                                : 0;
}

KR_ALWAYS_INLINE uint32_t kr_api_key(const kr_record *r) {
    const uint8_t *p = r->value;
    if (r->value_length < 2) return 0;
    if (KR_LIKELY((p[0] | p[1]) < 0x80)) return p[0] == KR_METADATA_FRAME ? p[1] : 0;
    return kr_odd_api_key(p, p + r->value_length);
}

KR_ALWAYS_INLINE int kr_is_marker(const kr_record *r) { return kr_is_marker_key(kr_api_key(r)); }

/* Whether a record tells of transactions: a marker, or a FeatureLevelRecord, which may say that there are none. */
KR_ALWAYS_INLINE int kr_is_marker_or_level(const kr_record *r) {
    enum { MARKERS = 7 << KR_FIRST_MARKER_KEY, WANTED = MARKERS | 1 << KR_FEATURE_LEVEL_KEY };
    uint32_t key = kr_api_key(r);
    return key <= KR_LAST_MARKER_KEY && ((uint32_t)WANTED >> key & 1);
}

KR_ALWAYS_INLINE void kr_record_put(kr_columns *c, const kr_batch_header *h, const kr_record *r, int padded,
                                    const uint32_t want) {
    int64_t row = c->rows;
    if ((want & KR_ONLY_MARKERS) && !kr_is_marker_or_level(r)) return;
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

/* Where a walk stands. */
typedef struct {
    const uint8_t *p, *end;
    const uint8_t *padded_end; /* KR_PADDING bytes before the end of what can be read */
    int32_t i, count;
    kr_crc_ahead ahead;
} kr_walk;

KR_ALWAYS_INLINE void kr_run_ahead(kr_walk *w) {
    if (w->p >= w->ahead.pos && w->ahead.pos < w->ahead.end) kr_crc_advance(&w->ahead);
}

/* The hot loop: well-formed records without headers, until one is not. Everything it writes through is held in local
 * variables, because a store of bytes might otherwise change any of it as far as the compiler knows. */
KR_ALWAYS_INLINE void kr_walk_plain(kr_walk *walk, kr_columns *c, const kr_batch_header *h, const uint32_t want) {
    kr_walk w = *walk;
    const int64_t base_offset = h->base_offset;
    const int64_t mask = h->attributes & KR_TIMESTAMP_TYPE_BIT ? 0 : -1; /* LogAppendTime: no deltas count */
    const int64_t base_timestamp = mask ? h->base_timestamp : h->max_timestamp;
    const int16_t control_type = KR_NO_CONTROL_TYPE;
    int64_t row = c->rows;
    uint8_t *const key_data = c->key.data, *const value_data = c->value.data;
    int32_t *const key_ends = c->key.ends, *const value_ends = c->value.ends;
    int32_t key_end = want & KR_WANT_KEY ? key_ends[row] : 0, value_end = want & KR_WANT_VALUE ? value_ends[row] : 0;
    int64_t key_nulls = 0, value_nulls = 0;
    int64_t *const offset = c->offset, *const timestamp = c->timestamp, *const timestamp_ms = c->timestamp_ms;
    int16_t *const control_types = c->control_type;
    int32_t *const header_ends = c->header_ends;
    const int32_t headers = (int32_t)c->headers;
    for (; w.i < w.count; w.i++) {
        kr_record r;
        kr_run_ahead(&w);
        if (!KR_LIKELY(kr_record_fast(w.p, w.end, w.padded_end, &r)) || r.headers_count) break;
        if ((want & KR_ONLY_MARKERS) && KR_LIKELY(!kr_is_marker_or_level(&r))) {
            w.p = r.end;
            continue;
        }
        int64_t ms = kr_add_wrapping(base_timestamp, r.timestamp_delta & mask), us;
        if (want & KR_WANT_TIMESTAMP) {
            if (!KR_LIKELY(ms != -1 && !__builtin_mul_overflow(ms, 1000, &us))) break; /* null */
            timestamp[row] = us;
        }
        if (want & KR_WANT_TIMESTAMP_MS) timestamp_ms[row] = ms;
        if (want & KR_WANT_KEY) {
            if (r.key_length >= 0) {
                kr_copy_padded(key_data + key_end, r.key, r.key_length);
                key_end += r.key_length;
            } else {
                kr_clear_bit(c->key.validity, row);
                key_nulls++;
            }
            key_ends[row + 1] = key_end;
        }
        if (want & KR_WANT_VALUE) {
            if (r.value_length >= 0) {
                kr_copy_padded(value_data + value_end, r.value, r.value_length);
                value_end += r.value_length;
            } else {
                kr_clear_bit(c->value.validity, row);
                value_nulls++;
            }
            value_ends[row + 1] = value_end;
        }
        if (want & KR_WANT_OFFSET) offset[row] = kr_add_wrapping(base_offset, r.offset_delta);
        if (want & KR_WANT_HEADERS) header_ends[row + 1] = headers;
        if (want & KR_WANT_CONTROL_TYPE) control_types[row] = control_type;
        w.p = r.end;
        row++;
    }
    c->rows = row;
    c->key.nulls += key_nulls;
    c->value.nulls += value_nulls;
    *walk = w;
}

/* Keys that are not UTF-8 grow, and Arrow counts their bytes in 32 bits. */
static inline int kr_headers_fit(const kr_columns *c, const kr_record *r) {
    return c->headers + r->headers_count <= c->max_headers &&
           c->header_key.ends[c->headers] + KR_UTF8_GROWTH * (int64_t)(r->end - r->headers) <= INT32_MAX;
}

/* One record by the careful parser. Returns 0 when the walk is over: `status` and `e` say why. */
static inline int kr_walk_careful(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                  uint32_t want, int *status, kr_error *e) {
    kr_record r;
    kr_reader in = kr_reader_make(start, w->p, w->end);
    kr_record_read(&in, &r);
    if ((want & KR_WANT_HEADERS) && in.error.status == KR_OK) { /* keys may grow beyond what Arrow's ends can count */
        int64_t room = (INT32_MAX - c->header_key.ends[c->headers]) / KR_UTF8_GROWTH;
        if (r.end - r.headers > room) kr_reader_fail(&in, KR_BAD_HEADER_KEY_LENGTH, room, r.end - r.headers);
    }
    if (in.error.status == KR_OK) {
        if ((want & KR_WANT_HEADERS) && !kr_headers_fit(c, &r)) {
            *status = KR_NEEDS_ROOM;
            return 0;
        }
        kr_record_put(c, h, &r, 0, want);
    } else {
        *status = in.error.status;
        *e = in.error;
        e->record_index = w->i;
        e->lost = w->end - w->p;
        if (!r.end || !kr_rest_is_sound(r.end, w->end, (int64_t)w->count - w->i - 1)) return 0;
        e->lost = r.end - w->p;
    }
    w->p = r.end;
    w->i++;
    return 1;
}

/* Walks the records of `w`; positions in faults count from `start`. KR_OK; KR_NEEDS_ROOM when the header columns are
 * full (the caller takes the rows back); or the fault of the first bad record, with the rows before it, and those
 * behind it if they are sound, kept. */
KR_ALWAYS_INLINE int kr_records_walk(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                     kr_error *e, const uint32_t want) {
    int status = KR_OK;
    for (;;) {
        /* control records are few: the careful parser knows their types */
        if (!(want & KR_WANT_CONTROL_TYPE) || !kr_is_control(h)) kr_walk_plain(w, c, h, want);
        if (w->i >= w->count || w->p >= w->end) break;
        kr_run_ahead(w);
        if (!kr_walk_careful(w, c, h, start, want, &status, e)) return status;
    }
    if (status != KR_OK) return status;
    if (w->i < w->count) return kr_fail(e, KR_MISSING_RECORDS, w->p - start, w->count, w->i);
    if (w->p < w->end) {
        kr_fail(e, KR_TRAILING_BYTES, w->p - start, w->count, w->end - w->p);
        e->lost = w->end - w->p;
        return KR_TRAILING_BYTES;
    }
    return KR_OK;
}

#define KR_WANT_COMMON  (KR_WANT_KEY | KR_WANT_VALUE | KR_WANT_OFFSET | KR_WANT_TIMESTAMP)
#define KR_WANT_MARKERS (KR_ONLY_MARKERS | KR_WANT_VALUE | KR_WANT_OFFSET)

static inline int kr_records_decode(kr_walk *w, kr_columns *c, const kr_batch_header *h, const uint8_t *start,
                                    kr_error *e, uint32_t want) {
    switch (want) { /* the usual sets get a loop of their own */
    case KR_WANT_COMMON:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON);
    case KR_WANT_COMMON | KR_WANT_HEADERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_COMMON | KR_WANT_HEADERS);
    case KR_WANT_MARKERS:
        return kr_records_walk(w, c, h, start, e, KR_WANT_MARKERS);
    default:
        return kr_records_walk(w, c, h, start, e, want);
    }
}

#endif
