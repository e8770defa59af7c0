/* A stretch of the metadata log, as the state machine of its transactions looks at it: one pass over the headers, which
 * a controller writes for nearly every record. It asks for columns of them only where offsets are missing. */
#ifndef KRAFTLOG_METADATA_STRETCH_H
#define KRAFTLOG_METADATA_STRETCH_H

#include "columns.h"
#include "metadata_marker.h"

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

/* A marker: `records` before it, markers not counted, batches up to its own, and bytes before its batch and through it.
 */
typedef struct {
    int64_t offset, place, base_offset, api_key, epoch;
    int64_t records, batches, bytes_before, bytes_through;
} kr_stretch_marker;

typedef struct {
    int64_t n;
    const int64_t *batches, *offsets, *api_keys; /* of each: the index of its batch, which rises */
} kr_marker_rows;

typedef struct {
    kr_stretch_sums sums;    /* of all batches, markers not counted */
    int64_t last, last_data; /* the last offset, and the last batch that is no control batch; -1 for none */
    int is_whole, is_rising; /* whether no offset is missing, and none comes again */
} kr_stretch_outline;

/* What there is of batches, behind what `before` has counted; the first one is expected at an offset. */
static inline kr_stretch_outline kr_stretch_look(const kr_batch_header *batches, int64_t n, int64_t place,
                                                 int64_t expected, kr_stretch_sums before, const kr_marker_rows *rows,
                                                 kr_stretch_marker *markers) {
    kr_stretch_outline o = {before, -1, -1, 1, 1};
    int64_t row = 0;
    for (int64_t i = 0; i < n; i++) {
        const kr_batch_header *h = &batches[i];
        kr_stretch_add(&o.sums, h);
        if (kr_is_data(h)) o.last_data = i;
        o.is_whole &= h->base_offset <= expected;
        o.is_rising &= h->base_offset >= expected;
        o.last = kr_stretch_last(h);
        expected = kr_add_wrapping(o.last, 1);
        for (; row < rows->n && rows->batches[row] == i; row++) {
            int64_t size = (int64_t)h->batch_length + KR_LOG_OVERHEAD;
            uint64_t within = (uint64_t)rows->offsets[row] - (uint64_t)h->base_offset - (uint64_t)h->records_count;
            markers[row] = (kr_stretch_marker){
                rows->offsets[row],  h->position + place,       h->base_offset,
                rows->api_keys[row], h->partition_leader_epoch, kr_add_wrapping(o.sums.records - row, (int64_t)within),
                o.sums.batches,      o.sums.bytes - size,       o.sums.bytes,
            };
        }
    }
    o.sums.records -= row;
    return o;
}

/* The rows that are markers or feature levels, and the batch of each; there is room for all rows. Returns how many.
 * `is_rising` says whether each offset is larger than the one before, of which the first is `before`. */
static inline int64_t kr_marker_rows_find(const kr_columns *c, int64_t before, int64_t *rows, int64_t *batches,
                                          int *is_rising) {
    const int32_t *ends = c->value.ends;
    const uint8_t *data = c->value.data;
    int64_t count = 0, row = 0;
    *is_rising = 1;
    for (int64_t batch = 0; batch < c->batches; batch++) {
        for (int64_t end = row + c->batch[batch].rows; row < end; row++) {
            *is_rising &= c->offset[row] > before;
            before = c->offset[row];
            if (KR_LIKELY(!kr_is_marker_or_level(data + ends[row], ends[row + 1] - ends[row]))) continue;
            rows[count] = row;
            batches[count++] = batch;
        }
    }
    return count;
}

#endif
