/* Columns to record batches of magic 2, packed in order into batches of at most max_batch_bytes, header counted.
 *
 * Each record's size is worked out exactly, then it is written in place; the header is filled in when the batch is
 * closed. A batch may stay open from one set of columns to the next. A plan may say how many records each batch has;
 * a batch that it fills too full is refused. Layouts: batch/batch.h and batch/record.h.
 */
#ifndef KRAFTLOG_RECORD_ENCODER_H
#define KRAFTLOG_RECORD_ENCODER_H

#include "arrow/lent.h"
#include "batch/batch.h"
#include "batch/metadata_marker.h"
#include "record/columns.h"

enum kr_time_unit { KR_MILLISECONDS, KR_MICROSECONDS, KR_NANOSECONDS };

typedef struct {
    int64_t rows;
    kr_lent_binary key, value;
    const int64_t *timestamp; /* NULL: that of the encoder when the batch was opened */
    enum kr_time_unit timestamp_unit;
    const int32_t *header_ends;     /* NULL: no headers; row i has headers [header_ends[i], header_ends[i + 1]) */
    const uint8_t *header_validity; /* NULL: no list is null; one that is has no headers, whatever its ends are */
    int64_t header_validity_offset; /* in bits */
    kr_lent_binary header_key, header_value;
} kr_source;

typedef struct {
    /* settings; base_offset and base_sequence move on with each batch */
    int64_t base_offset;
    int64_t producer_id;
    int64_t max_batch_bytes;
    int32_t max_batch_records;
    int32_t base_sequence;
    int32_t partition_leader_epoch;
    int16_t producer_epoch;
    int16_t attributes;
    int64_t timestamp;            /* of records without one, in batches that are opened from now on */
    const int32_t *batch_records; /* the plan: records of each of the next `planned` batches; or NULL */
    int64_t planned;
    int8_t refuse_markers; /* values that begin, end or abort a metadata transaction are refused */
    /* output, and the open batch at the end of it */
    uint8_t *out;
    int64_t capacity; /* KR_PADDING bytes more are allocated */
    int64_t written;
    int64_t batch_at; /* -1: none open */
    int32_t count, most_records;
    int64_t base_timestamp, max_timestamp, default_timestamp;
    int64_t row; /* where to go on in the source */
    kr_error error;
} kr_encoder;

enum {
    KR_RECORD_OVERHEAD = 24, /* bytes of a record without headers beside its key and value: most take less */
    KR_LONGEST_FRAME = 48,   /* at most */
    KR_USUAL_FRAME = 8       /* for most, without the length in front */
};

/* Bytes of the data of values [first, last). */
static inline int64_t kr_source_bytes(const kr_lent_binary *s, int64_t first, int64_t last) {
    return s->ends ? (int64_t)s->ends[last] - s->ends[first] : 0;
}

static inline int kr_headers_are_null(const kr_source *s, int64_t i) {
    return !kr_is_valid(s->header_validity, s->header_validity_offset + i);
}

KR_ALWAYS_INLINE int64_t kr_divide_down(int64_t a, const int64_t b) { return a / b - (a % b < 0); }

/* Milliseconds of row i; finer timestamps are rounded down, before 1970 as well. */
KR_ALWAYS_INLINE int64_t kr_source_milliseconds(const kr_source *s, int64_t i) {
    int64_t timestamp = s->timestamp[i];
    if (s->timestamp_unit == KR_MICROSECONDS) return kr_divide_down(timestamp, 1000);
    return s->timestamp_unit == KR_NANOSECONDS ? kr_divide_down(timestamp, 1000000) : timestamp;
}

KR_ALWAYS_INLINE uint8_t *kr_put_field(uint8_t *p, const kr_lent_binary *s, int64_t i, int64_t length) {
    p = kr_put_varint(p, (int32_t)length);
    if (length <= 0) return p;
    int64_t begin = s->ends[i];
    if (begin + length + KR_PADDING <= s->data_size)
        kr_copy_padded(p, s->data + begin, length);
    else
        memcpy(p, s->data + begin, (size_t)length);
    return p + length;
}

static inline int64_t kr_headers_size(const kr_source *s, int64_t first, int64_t last) {
    int64_t size = kr_varint_size((int32_t)(last - first));
    for (int64_t i = first; i < last; i++)
        size += kr_field_size(kr_lent_length(&s->header_key, i)) + kr_field_size(kr_lent_length(&s->header_value, i));
    return size;
}

static inline uint8_t *kr_put_headers(uint8_t *p, const kr_source *s, int64_t first, int64_t last) {
    p = kr_put_varint(p, (int32_t)(last - first));
    for (int64_t i = first; i < last; i++) {
        p = kr_put_field(p, &s->header_key, i, kr_lent_length(&s->header_key, i));
        p = kr_put_field(p, &s->header_value, i, kr_lent_length(&s->header_value, i));
    }
    return p;
}

/* Fills in the crc, and batch_length, of the batch in [p, p + size). */
static inline void kr_seal_batch(uint8_t *p, int64_t size) {
    kr_store_int32(p + KR_LENGTH_AT, (int32_t)(size - KR_LOG_OVERHEAD));
    kr_store_uint32(p + KR_CRC_AT, kr_crc32c(0, p + KR_ATTRIBUTES_AT, (size_t)(size - KR_ATTRIBUTES_AT)));
}

/* Kafka counts sequences in [0, 2^31): behind the largest comes 0. */
static inline int32_t kr_next_sequence(int32_t sequence, int32_t count) {
    return sequence < 0 ? sequence : (int32_t)(((uint32_t)sequence + (uint32_t)count) & 0x7fffffffu);
}

static inline void kr_encoder_close_batch(kr_encoder *w) {
    if (w->batch_at < 0) return;
    uint8_t *p = w->out + w->batch_at;
    kr_store_int64(p, w->base_offset);
    kr_store_int32(p + KR_LEADER_EPOCH_AT, w->partition_leader_epoch);
    p[KR_MAGIC_AT] = 2;
    kr_store_int16(p + KR_ATTRIBUTES_AT, w->attributes);
    kr_store_int32(p + KR_LAST_OFFSET_DELTA_AT, w->count - 1);
    kr_store_int64(p + KR_BASE_TIMESTAMP_AT, w->base_timestamp);
    kr_store_int64(p + KR_MAX_TIMESTAMP_AT, w->max_timestamp);
    kr_store_int64(p + KR_PRODUCER_ID_AT, w->producer_id);
    kr_store_int16(p + KR_PRODUCER_EPOCH_AT, w->producer_epoch);
    kr_store_int32(p + KR_BASE_SEQUENCE_AT, w->base_sequence);
    kr_store_int32(p + KR_RECORDS_COUNT_AT, w->count);
    kr_seal_batch(p, w->written - w->batch_at);
    w->base_offset = kr_add_wrapping(w->base_offset, w->count);
    w->base_sequence = kr_next_sequence(w->base_sequence, w->count);
    w->batch_at = -1;
}

/* Sizes of one record. */
typedef struct {
    int64_t key_length, value_length, body;
    int64_t first_header, last_header;
    int64_t timestamp, timestamp_delta;
} kr_measure;

/* Its headers lie in the columns of headers from the first to the last; in a function of its own, as most have none. */
static __attribute__((noinline)) void kr_find_headers(const kr_source *s, int64_t i, kr_measure *m) {
    if (kr_headers_are_null(s, i)) return;
    m->first_header = s->header_ends[i];
    m->last_header = s->header_ends[i + 1];
}

KR_ALWAYS_INLINE int64_t kr_record_measure(const kr_encoder *w, const kr_source *s, int64_t i, int is_first,
                                           kr_measure *m) {
    int32_t offset_delta = is_first ? 0 : w->count;
    m->timestamp = s->timestamp ? kr_source_milliseconds(s, i) : is_first ? w->timestamp : w->default_timestamp;
    m->timestamp_delta = is_first ? 0 : (int64_t)((uint64_t)m->timestamp - (uint64_t)w->base_timestamp);
    m->key_length = kr_lent_length(&s->key, i);
    m->value_length = kr_lent_length(&s->value, i);
    m->first_header = m->last_header = 0;
    if (s->header_ends) kr_find_headers(s, i, m);
    m->body = 1 + kr_varlong_size(m->timestamp_delta) + kr_varint_size(offset_delta) + kr_field_size(m->key_length) +
              kr_field_size(m->value_length) + 1;
    if (m->last_header != m->first_header) m->body += kr_headers_size(s, m->first_header, m->last_header) - 1;
    return m->body + kr_varint_size((int32_t)(m->body < INT32_MAX ? m->body : INT32_MAX));
}

KR_ALWAYS_INLINE void kr_record_write(kr_encoder *w, const kr_source *s, int64_t i, const kr_measure *m) {
    uint8_t *p = w->out + w->written;
    p = kr_put_varint(p, (int32_t)m->body);
    *p++ = 0;
    p = kr_put_varlong(p, m->timestamp_delta);
    p = kr_put_varint(p, w->count);
    p = kr_put_field(p, &s->key, i, m->key_length);
    p = kr_put_field(p, &s->value, i, m->value_length);
    if (m->last_header != m->first_header)
        p = kr_put_headers(p, s, m->first_header, m->last_header);
    else
        *p++ = 0;
    w->written = p - w->out;
    w->count++;
    if (m->timestamp > w->max_timestamp) w->max_timestamp = m->timestamp;
}

static inline int kr_source_is_marker(const kr_lent_binary *s, int64_t i) {
    kr_record r;
    int64_t length = kr_lent_length(s, i);
    if (length < 2) return 0;
    r.value = s->data + s->ends[i];
    r.value_length = (int32_t)length;
    return kr_is_marker(&r);
}

/* What the first two bytes of values came to: whether one of them may be a marker is asked once, behind the loop. */
typedef struct {
    uint32_t bits; /* of all bytes */
    uint32_t key;  /* least distance behind the first key of a marker */
} kr_heads;

KR_ALWAYS_INLINE void kr_heads_add(kr_heads *h, const uint8_t *p) {
    uint16_t head;
    memcpy(&head, p, 2);
    uint32_t key = (uint32_t)(head >> 8) - KR_FIRST_MARKER_KEY;
    h->bits |= head;
    h->key = key < h->key ? key : h->key;
}

KR_ALWAYS_INLINE int kr_heads_may_be_marker(const kr_heads *h) {
    return (h->bits & 0x8080) || h->key <= KR_LAST_MARKER_KEY - KR_FIRST_MARKER_KEY;
}

/* Writes a record that is not the first of its batch before its size is known: its length goes in front afterwards,
 * where room was left for as many bytes as it will take, most likely. Returns the end, or NULL where the batch is full,
 * memory is short, or there are headers: nothing is written then, as far as the encoder knows. */
KR_ALWAYS_INLINE uint8_t *kr_record_try(const kr_encoder *w, const kr_source *s, int64_t i, int64_t timestamp,
                                        kr_heads *heads) {
    int64_t key_length = kr_lent_length(&s->key, i), value_length = kr_lent_length(&s->value, i);
    int64_t data = (key_length > 0 ? key_length : 0) + (value_length > 0 ? value_length : 0);
    int64_t full = w->batch_at + w->max_batch_bytes;
    if (s->header_ends || w->written + data + KR_SMALLEST_RECORD > full ||
        w->written + data + KR_LONGEST_FRAME > w->capacity)
        return 0;
    uint8_t *start = w->out + w->written;
    int64_t guess = data + KR_USUAL_FRAME;
    uint8_t *body = start + (guess < 1 << 6 ? 1 : guess < 1 << 13 ? 2 : guess < 1 << 20 ? 3 : 4), *p = body;
    *p++ = 0;
    p = kr_put_varlong(p, (int64_t)((uint64_t)timestamp - (uint64_t)w->base_timestamp));
    p = kr_put_varint(p, w->count);
    p = kr_put_field(p, &s->key, i, key_length);
    p = kr_put_field(p, &s->value, i, value_length);
    if (heads) kr_heads_add(heads, p - value_length);
    *p++ = 0;
    int64_t size = p - body;
    uint8_t *behind_length = kr_put_varint(start, (int32_t)size);
    if (!KR_LIKELY(behind_length == body)) {
        memmove(behind_length, body, (size_t)size);
        *behind_length = 0; /* the attributes, in case the length was written over them */
        p = behind_length + size;
    }
    return p - w->out <= full ? p : 0;
}

static inline void kr_encoder_open_batch(kr_encoder *w, int64_t base_timestamp) {
    w->batch_at = w->written;
    w->written += KR_RECORD_BATCH_OVERHEAD;
    w->count = 0;
    w->most_records = w->planned > 0 ? *w->batch_records++ : w->max_batch_records;
    w->planned -= w->planned > 0;
    w->base_timestamp = w->max_timestamp = base_timestamp;
    w->default_timestamp = w->timestamp;
}

/* Whether there is nothing but values, none of them null: records of the metadata log. */
static inline int kr_is_values_alone(const kr_source *s) {
    return !s->key.ends && !s->timestamp && !s->header_ends && s->value.ends && !s->value.validity;
}

/* The same source, of which the compiler knows that it is so. */
KR_ALWAYS_INLINE kr_source kr_values_of(const kr_source *s) {
    const kr_lent_binary values = {.ends = s->value.ends, .data = s->value.data, .data_size = s->value.data_size};
    return (kr_source){.rows = s->rows, .value = values, .timestamp_unit = KR_MILLISECONDS};
}

/* Says why the record of `row` is not written, of which so many bytes stand behind its length. */
static int kr_encoder_stopped(kr_encoder *w, int status, int64_t body) {
    int64_t before = w->batch_at < 0 ? KR_RECORD_BATCH_OVERHEAD : w->written - w->batch_at;
    if (status == KR_RECORD_TOO_LARGE)
        kr_fail(&w->error, status, w->written, w->max_batch_bytes,
                before + body + kr_uvarint64_size(2 * (uint64_t)body));
    else if (status == KR_UNEXPECTED_MARKER)
        kr_fail(&w->error, status, w->written, 0, 0);
    else
        kr_fail(&w->error, status, w->written, KR_RECORD_BATCH_OVERHEAD + KR_VARINT_MAX + body, 0);
    w->error.record_index = (int32_t)w->row;
    return status;
}

KR_ALWAYS_INLINE int kr_encoder_run_as(kr_encoder *encoder, const kr_source *source, const int values_alone) {
    kr_encoder local = *encoder, *const w = &local; /* local: a store of bytes cannot change them */
    const kr_source columns = values_alone ? kr_values_of(source) : *source, *const s = &columns;
    const int refuse_markers = values_alone && w->refuse_markers;
    int status = KR_OK;
    kr_measure m = {0, 0, 0, 0, 0, 0, 0};
    kr_heads heads = {0, UINT32_MAX};
    int64_t i = w->row;
    for (; i < s->rows; i++) {
        int is_first = w->batch_at < 0;
        if (!is_first && w->count < w->most_records) {
            int64_t timestamp = s->timestamp ? kr_source_milliseconds(s, i) : w->default_timestamp;
            uint8_t *end = kr_record_try(w, s, i, timestamp, values_alone ? &heads : 0);
            if (KR_LIKELY(end != 0)) {
                w->written = end - w->out;
                w->count++;
                if (timestamp > w->max_timestamp) w->max_timestamp = timestamp;
                continue;
            }
        }
        if (refuse_markers && kr_source_is_marker(&s->value, i)) {
            status = KR_UNEXPECTED_MARKER;
            break;
        }
        int64_t size = kr_record_measure(w, s, i, is_first, &m);
        int is_planned = w->batch_records && !is_first && w->count < w->most_records;
        int is_full =
            !is_first && (w->written - w->batch_at + size > w->max_batch_bytes || w->count >= w->most_records);
        if (is_full && !is_planned) {
            kr_encoder_close_batch(w);
            is_first = 1;
            size = kr_record_measure(w, s, i, is_first, &m);
        }
        int64_t needed = size + (is_first ? KR_RECORD_BATCH_OVERHEAD : 0);
        if (is_first ? needed > w->max_batch_bytes : is_full) {
            status = KR_RECORD_TOO_LARGE;
            break;
        }
        if (w->written + needed > w->capacity) {
            status = KR_NEEDS_ROOM;
            break;
        }
        if (is_first) kr_encoder_open_batch(w, m.timestamp);
        kr_record_write(w, s, i, &m);
    }
    if (refuse_markers && kr_heads_may_be_marker(&heads))
        for (int64_t row = encoder->row; row < i; row++)
            if (kr_source_is_marker(&s->value, row)) {
                status = KR_UNEXPECTED_MARKER;
                i = row;
            }
    *encoder = local;
    encoder->row = i;
    return status == KR_OK ? KR_OK : kr_encoder_stopped(encoder, status, m.body);
}

/* Apart, so that each loop has the registers to itself. */
static __attribute__((noinline)) int kr_encoder_run_any(kr_encoder *w, const kr_source *s) {
    return kr_encoder_run_as(w, s, 0);
}

static __attribute__((noinline)) int kr_encoder_run_values(kr_encoder *w, const kr_source *s) {
    return kr_encoder_run_as(w, s, 1);
}

/* Writes the source from row w->row on. KR_OK when all of it is written (a batch may be open); KR_NEEDS_ROOM with
 * error.expected bytes; KR_RECORD_TOO_LARGE and KR_UNEXPECTED_MARKER with the row in error.record_index. */
static inline int kr_encoder_run(kr_encoder *w, const kr_source *s) {
    if (kr_is_values_alone(s)) return kr_encoder_run_values(w, s);
    kr_source before = *s; /* the rows before the first marker */
    for (int64_t row = w->row; w->refuse_markers && row < before.rows; row++)
        if (kr_source_is_marker(&s->value, row)) before.rows = row;
    int status = kr_encoder_run_any(w, &before);
    if (status != KR_OK || before.rows == s->rows) return status;
    kr_fail(&w->error, KR_UNEXPECTED_MARKER, w->written, 0, 0);
    w->error.record_index = (int32_t)before.rows;
    return KR_UNEXPECTED_MARKER;
}

/* Lists of records one behind the other. Each is encoded as if it were alone: its first batch is like the first of all,
 * and no batch has records of two lists. A marker may stand in front of the records of a list, and one behind them. */
typedef struct {
    int64_t count;
    const int64_t *ends;                     /* of each list: the row behind its last one */
    kr_lent_binary begin_marker, end_marker; /* a value for each list; without ends there are none */
    int64_t base_offset;                     /* of the first batch of each; so are the next three */
    int32_t base_sequence;
    const int32_t *batch_records;
    int64_t planned;
    int64_t *written; /* put here: where the batches of each list end */
    int64_t at;       /* the list to go on with */
    int has_begun;    /* whether the marker in front of its records is written */
} kr_record_lists;

static inline kr_record_lists kr_record_lists_of(const kr_encoder *w, int64_t count, const int64_t *ends,
                                                 int64_t *written) {
    kr_record_lists l = {.count = count, .ends = ends, .written = written};
    l.base_offset = w->base_offset;
    l.base_sequence = w->base_sequence;
    l.batch_records = w->batch_records;
    l.planned = w->planned;
    return l;
}

/* Writes value i of a column of markers. */
static inline int kr_encoder_run_marker(kr_encoder *w, const kr_lent_binary *markers, int64_t i) {
    if (!markers->ends) return KR_OK;
    const kr_source one = {.rows = i + 1, .value = *markers};
    const int64_t row = w->row;
    const int8_t refuse_markers = w->refuse_markers;
    w->row = i;
    w->refuse_markers = 0;
    int status = kr_encoder_run(w, &one);
    w->row = row;
    w->refuse_markers = refuse_markers;
    return status;
}

/* Writes a source whose first row is `first_row` of all, as kr_encoder_run does; lists end in it or in the next one. */
static inline int kr_encoder_run_lists(kr_encoder *w, const kr_source *s, int64_t first_row, kr_record_lists *l) {
    kr_source rows = *s;
    for (; l->at < l->count; l->at++) {
        int64_t end = l->ends[l->at] - first_row;
        int status = l->has_begun ? KR_OK : kr_encoder_run_marker(w, &l->begin_marker, l->at);
        if (status != KR_OK) return status;
        l->has_begun = 1;
        rows.rows = end < s->rows ? end : s->rows;
        if (w->row < rows.rows && (status = kr_encoder_run(w, &rows)) != KR_OK) return status;
        if (end > s->rows) return KR_OK;
        if ((status = kr_encoder_run_marker(w, &l->end_marker, l->at)) != KR_OK) return status;
        kr_encoder_close_batch(w);
        l->written[l->at] = w->written;
        l->has_begun = 0;
        w->base_offset = l->base_offset;
        w->base_sequence = l->base_sequence;
        w->batch_records = l->batch_records;
        w->planned = l->planned;
    }
    return KR_OK;
}

#endif
