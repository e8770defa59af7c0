/* A stretch of the metadata log, as the state machine of its transactions looks at it: one pass over the headers, which
 * a controller writes for nearly every record. It asks for columns of them only where offsets are missing. */
#ifndef KRAFTLOG_METADATA_STRETCH_H
#define KRAFTLOG_METADATA_STRETCH_H

#include "batch/metadata_marker.h"
#include "record/columns.h"

/* One number for each batch. Control batches count for nothing in the sums, which are of all batches up to each. */
typedef struct {
    int64_t *base, *last, *epochs, *places;
    int64_t *records, *data_batches, *bytes;
    int64_t *last_data; /* the last batch up to each that is no control batch; -1 for none */
    uint8_t *is_data;
} kr_stretch_columns;

/* Records, batches and bytes, of which control batches have none. */
typedef struct {
    int64_t records, batches, bytes;
} kr_stretch_sums;

static inline int64_t kr_stretch_last(const kr_batch_header *h) {
    int64_t last = kr_last_offset(h);
    return last < h->base_offset ? h->base_offset : last;
}

static inline int kr_is_data(const kr_batch_header *h) { return !(h->attributes & KR_CONTROL_BIT); }

KR_ALWAYS_INLINE void kr_stretch_add(kr_stretch_sums *sums, const kr_batch_header *h) {
    int64_t is_data = kr_is_data(h);
    sums->records += is_data && h->records_count > 0 ? h->records_count : 0;
    sums->batches += is_data;
    sums->bytes += is_data ? (int64_t)h->batch_length + KR_LOG_OVERHEAD : 0;
}

/* `place` is that of byte 0. */
static inline void kr_stretch(const kr_batch_header *batches, int64_t n, int64_t place, const kr_stretch_columns *to) {
    kr_stretch_sums sums = {0, 0, 0};
    int64_t last_data = -1;
    for (int64_t i = 0; i < n; i++) {
        const kr_batch_header *h = &batches[i];
        kr_stretch_add(&sums, h);
        last_data = kr_is_data(h) ? i : last_data;
        to->base[i] = h->base_offset;
        to->last[i] = kr_stretch_last(h);
        to->epochs[i] = h->partition_leader_epoch;
        to->places[i] = h->position + place;
        to->is_data[i] = (uint8_t)kr_is_data(h);
        to->records[i] = sums.records;
        to->data_batches[i] = sums.batches;
        to->bytes[i] = sums.bytes;
        to->last_data[i] = last_data;
    }
}

/* A marker, or a feature level: `records` before it, markers not counted, batches up to its own, and bytes before its
 * batch and through it. */
typedef struct {
    int64_t offset, place, base_offset, api_key, epoch;
    int64_t records, batches, bytes_before, bytes_through;
} kr_stretch_marker;

/* What there is of batches, counted from the first one. */
typedef struct {
    kr_stretch_sums sums;    /* of all batches, markers not counted */
    int64_t last, last_data; /* the last offset, and the last batch that is no control batch; -1 for none */
    int is_whole, is_rising; /* whether no offset is missing between them, and none comes again */
} kr_stretch_outline;

#define KR_NO_OUTLINE {{0, 0, 0}, -1, -1, 1, 1}

KR_ALWAYS_INLINE void kr_outline_batch(kr_stretch_outline *o, const kr_batch_header *h, int64_t i) {
    int64_t expected = i ? kr_add_wrapping(o->last, 1) : h->base_offset;
    kr_stretch_add(&o->sums, h);
    o->last_data = kr_is_data(h) ? i : o->last_data;
    o->is_whole &= h->base_offset <= expected;
    o->is_rising &= h->base_offset >= expected;
    o->last = kr_stretch_last(h);
}

/* One in the batch that was added last, behind so many markers. */
static inline kr_stretch_marker kr_outline_marker(const kr_stretch_outline *o, const kr_batch_header *h, int64_t offset,
                                                  int64_t api_key, int64_t markers) {
    int64_t size = (int64_t)h->batch_length + KR_LOG_OVERHEAD;
    uint64_t within = (uint64_t)offset - (uint64_t)h->base_offset - (uint64_t)h->records_count;
    int64_t records = kr_add_wrapping(o->sums.records - markers, (int64_t)within);
    return (kr_stretch_marker){offset,  h->position,     h->base_offset,       api_key,      h->partition_leader_epoch,
                               records, o->sums.batches, o->sums.bytes - size, o->sums.bytes};
}

typedef struct {
    int64_t n;
    const int64_t *batches, *offsets, *api_keys; /* of each: the index of its batch, which rises */
} kr_marker_rows;

/* The outline of batches whose markers are known. */
static inline kr_stretch_outline kr_stretch_look(const kr_batch_header *batches, int64_t n, const kr_marker_rows *rows,
                                                 kr_stretch_marker *markers) {
    kr_stretch_outline o = KR_NO_OUTLINE;
    int64_t row = 0;
    for (int64_t i = 0; i < n; i++) {
        kr_outline_batch(&o, &batches[i], i);
        for (; row < rows->n && rows->batches[row] == i; row++)
            markers[row] = kr_outline_marker(&o, &batches[i], rows->offsets[row], rows->api_keys[row], row);
    }
    o.sums.records -= row;
    return o;
}

/* Where the markers and feature levels of a chunk are written; there is room for all rows. */
typedef struct {
    int64_t *rows, *batches; /* of each */
    kr_stretch_marker *markers;
} kr_found_markers;

/* Finds the markers and feature levels of a chunk, and the outline of its batches. Returns how many there are.
 * `is_rising` says whether each offset is larger than the one before, of which the first is `before`. */
static inline int64_t kr_marker_rows_find(const kr_columns *c, int64_t before, const kr_found_markers *to,
                                          kr_stretch_outline *outline, int *is_rising) {
    const int32_t *ends = c->value.ends;
    const uint8_t *data = c->value.data;
    kr_stretch_outline o = KR_NO_OUTLINE;
    int64_t count = 0, levels = 0, row = 0;
    *is_rising = 1;
    for (int64_t batch = 0; batch < c->batches; batch++) {
        const kr_batch_header *h = &c->batch[batch];
        kr_outline_batch(&o, h, batch);
        for (int64_t end = row + h->rows; row < end; row++) {
            const uint8_t *value = data + ends[row];
            int64_t offset = c->offset[row], length = ends[row + 1] - ends[row];
            *is_rising &= offset > before;
            before = offset;
            if (KR_LIKELY(!kr_is_marker_or_level(value, length))) continue;
            uint32_t key = kr_api_key(value, length);
            to->rows[count] = row;
            to->batches[count] = batch;
            to->markers[count] = kr_outline_marker(&o, h, offset, key, count - levels);
            count++;
            levels += key == KR_FEATURE_LEVEL_KEY;
        }
    }
    o.sums.records -= count - levels;
    *outline = o;
    return count;
}

/* Bytes of the values of markers in a chunk: their texts take at most as many. -1 for rows outside of the chunk. */
static inline int64_t kr_marker_bytes(const kr_columns *c, const int64_t *rows, int64_t count) {
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= c->rows) return -1;
        size += c->value.ends[rows[i] + 1] - c->value.ends[rows[i]];
    }
    return size;
}

typedef struct {
    int32_t *ends; /* from 0 */
    uint8_t *data;
    uint8_t *has_text, *is_odd; /* of each; the text of an odd one is left out */
} kr_marker_texts;

/* The texts of markers one behind the other; returns their bytes. */
static inline int64_t kr_marker_texts_put(const kr_columns *c, const int64_t *rows, int64_t count,
                                          const kr_marker_texts *to) {
    int64_t size = 0;
    to->ends[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = c->value.ends[rows[i]];
        const uint8_t *text = 0;
        int64_t length = kr_marker_text(c->value.data + begin, c->value.ends[rows[i] + 1] - begin, &text);
        to->is_odd[i] = length == KR_ODD_MARKER;
        to->has_text[i] = length >= 0;
        if (length > 0) {
            memcpy(to->data + size, text, (size_t)length);
            size += length;
        }
        to->ends[i + 1] = (int32_t)size;
    }
    return size;
}

#endif
