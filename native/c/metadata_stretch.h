/* Columns of the headers of a stretch of the metadata log, as the state machine of its transactions compares them: one
 * pass over the headers, which a controller writes for nearly every record. */
#ifndef KRAFTLOG_METADATA_STRETCH_H
#define KRAFTLOG_METADATA_STRETCH_H

#include "batch.h"

/* One number for each batch. Control batches count for nothing in the sums, which are of all batches up to each. */
typedef struct {
    int64_t *base, *last, *epochs, *places;
    int64_t *records, *data_batches, *bytes;
    int64_t *last_data; /* the last batch up to each that is no control batch; -1 for none */
    uint8_t *is_data;
} kr_stretch_columns;

/* `place` is that of byte 0. Into `batch_of` goes the batch of each row; returns how many rows there are, of which no
 * more than `rows` are written. */
static inline int64_t kr_stretch(const kr_batch_header *batches, int64_t n, int64_t place, const kr_stretch_columns *to,
                                 int64_t *batch_of, int64_t rows) {
    int64_t records = 0, data = 0, bytes = 0, last_data = -1, row = 0;
    for (int64_t i = 0; i < n; i++) {
        const kr_batch_header *h = &batches[i];
        int64_t last = kr_last_offset(h), is_data = !(h->attributes & KR_CONTROL_BIT);
        to->base[i] = h->base_offset;
        to->last[i] = last < h->base_offset ? h->base_offset : last;
        to->epochs[i] = h->partition_leader_epoch;
        to->places[i] = h->position + place;
        to->is_data[i] = (uint8_t)is_data;
        records += is_data && h->records_count > 0 ? h->records_count : 0;
        bytes += is_data ? (int64_t)h->batch_length + KR_LOG_OVERHEAD : 0;
        data += is_data;
        last_data = is_data ? i : last_data;
        to->records[i] = records;
        to->data_batches[i] = data;
        to->bytes[i] = bytes;
        to->last_data[i] = last_data;
        for (int32_t k = 0; k < h->rows; k++, row++)
            if (row < rows) batch_of[row] = i;
    }
    return row;
}

#endif
