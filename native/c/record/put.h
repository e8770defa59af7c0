/* One record into columns: the only place that knows which field goes where. */
#ifndef KRAFTLOG_RECORD_PUT_H
#define KRAFTLOG_RECORD_PUT_H

#include "batch/metadata_marker.h"
#include "batch/record.h"
#include "record/columns.h"
#include "text/utf8.h"

/* Keys that are not UTF-8 grow, and Arrow counts their bytes in 32 bits. */
static inline int kr_headers_fit(const kr_columns *c, const kr_record *r) {
    return c->headers.count + r->headers_count <= c->max_headers &&
           c->headers.key.end + KR_UTF8_GROWTH * (r->end - r->headers) <= INT32_MAX;
}

/* The headers of a record, checked on the way. Returns 0, with the columns as they were, when one is bad or there is
 * no room; never for a record that kr_record_read has passed and that fits. `padded`: the record ends where
 * kr_record_fast asks for. */
KR_ALWAYS_INLINE int kr_headers_put(kr_columns *c, const kr_record *r, const int padded, const int wanted) {
    kr_binary_column keys = c->headers.key, values = c->headers.value;
    const uint8_t *p = r->headers, *key, *value;
    int32_t key_length, value_length, left = r->headers_count;
    int64_t row = c->headers.count;
    if (wanted && padded && !kr_headers_fit(c, r)) return 0;
    for (; left > 0; left--, row++) {
        if (!KR_LIKELY(p = kr_header_fast(p, r->end, &key, &key_length, &value, &value_length))) break;
        if (!wanted) continue;
        keys.end += kr_copy_text(keys.data + keys.end, key, key_length, padded);
        keys.ends[row + 1] = (int32_t)keys.end;
        kr_put_binary(&values, row, value, value_length, padded);
    }
    if (!KR_LIKELY(left == 0 && p == r->end)) {
        if (wanted) kr_set_bits(c->headers.value.validity, c->headers.count, row);
        return 0;
    }
    if (wanted) {
        c->headers.key = keys;
        c->headers.value = values;
        c->headers.count = row;
    }
    return 1;
}

static inline int16_t kr_control_type_of(const kr_record *r) {
    return r->key_length >= 4 ? kr_load_int16(r->key + 2) : KR_NO_CONTROL_TYPE;
}

/* Returns 0, with the columns as they were, when the record has headers that kr_headers_put refuses. */
KR_ALWAYS_INLINE int kr_record_put(kr_columns *c, const kr_batch_header *h, const kr_record *r, const int padded,
                                   const uint32_t want) {
    int64_t row = c->rows;
    int is_row = !(want & KR_ONLY_MARKERS) || !KR_LIKELY(!kr_is_marker_or_level(r->value, r->value_length));
    if (r->headers_count && !KR_LIKELY(kr_headers_put(c, r, padded, (want & KR_WANT_HEADERS) && is_row))) return 0;
    if (!is_row) return 1;
    if (want & KR_WANT_OFFSET) c->offset[row] = kr_add_wrapping(h->base_offset, r->offset_delta);
    if (want & (KR_WANT_TIMESTAMP | KR_WANT_TIMESTAMP_MS)) {
        int64_t ms = h->attributes & KR_TIMESTAMP_TYPE_BIT ? h->max_timestamp
                                                           : kr_add_wrapping(h->base_timestamp, r->timestamp_delta);
        if (want & KR_WANT_TIMESTAMP) kr_put_timestamp(&c->timestamp, row, ms);
        if (want & KR_WANT_TIMESTAMP_MS) c->timestamp_ms[row] = ms;
    }
    if (want & KR_VIEWS) {
        if (want & KR_WANT_KEY) kr_put_view(&c->key, row, r->key, r->key_length, c->view_from, padded);
        if (want & KR_WANT_VALUE) kr_put_view(&c->value, row, r->value, r->value_length, c->view_from, padded);
    } else {
        if (want & KR_WANT_KEY) kr_put_binary(&c->key, row, r->key, r->key_length, padded);
        if (want & KR_WANT_VALUE) kr_put_binary(&c->value, row, r->value, r->value_length, padded);
    }
    if (want & KR_WANT_HEADERS) c->headers.ends[row + 1] = (int32_t)c->headers.count;
    if (want & KR_WANT_CONTROL_TYPE)
        c->control_type[row] = kr_is_control(h) ? kr_control_type_of(r) : KR_NO_CONTROL_TYPE;
    c->rows = row + 1;
    return 1;
}

#endif
