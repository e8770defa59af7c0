/* How large the columns of the next chunk are made.
 *
 * The batch that waits is the sample: what is left of the input is taken to hold batches like it, and no more room is
 * asked for than that, whatever the caller allows. A guess that is too small ends the chunk early; the next one has
 * another sample.
 */
#ifndef KRAFTLOG_RECORD_CHUNK_SIZE_H
#define KRAFTLOG_RECORD_CHUNK_SIZE_H

#include "record/decoder.h"

enum {
    KR_LARGE_RECORD = 64,     /* bytes: room for the rows of records of at least this size is there in any case, */
    KR_LARGE_BATCH_OF = 1024, /* and for the headers of batches of this size */
    KR_FEW_BATCHES = 8,
    KR_FEW_HEADERS = 16,
    KR_SMALLEST_HEADER = 2 /* two lengths of one byte */
};

static inline int64_t kr_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t kr_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* a * share, and a quarter more, for what comes may be denser; without overflow. */
static inline int64_t kr_scaled(int64_t a, double share) {
    double scaled = (double)a * share * 1.25;
    return scaled < (double)(INT64_MAX / 2) ? (int64_t)scaled : INT64_MAX / 2;
}

/* Sets the limits of d->columns, after KR_NEEDS_ROOM, to at most so many rows and bytes where the batch fits them. */
static inline void kr_size_chunk(kr_decoder *d, int64_t most_rows, int64_t most_bytes) {
    kr_columns *c = &d->columns;
    /* columns with room for the batch, but not for its headers: keys may be of no bytes at all */
    int is_copied = (d->want & KR_VIEWS) && d->needs_copies && !c->max_copied;
    int is_full_of_headers =
        !is_copied && d->needs_bytes <= c->max_bytes && d->needs_rows <= c->max_rows && c->max_batches > 0;
    int64_t left = kr_most(kr_least(d->end, d->input.size) - d->position, d->needs_input);
    int64_t bytes =
        d->needs_bytes > d->needs_input ? kr_scaled(left, (double)d->needs_bytes / (double)d->needs_input) : left;
    bytes = kr_most(kr_least(bytes, most_bytes), d->needs_bytes);
    double batches = (double)bytes / (double)d->needs_bytes;
    int64_t rows = kr_most(kr_scaled(d->needs_rows, batches), bytes / KR_LARGE_RECORD);
    rows = kr_least(kr_least(rows, bytes / KR_SMALLEST_RECORD), most_rows);
    c->max_bytes = bytes;
    c->max_copied = d->needs_copies ? bytes : 0;
    c->max_rows = kr_most(rows, d->needs_rows + 1);
    c->max_batches = kr_most(kr_scaled(1, batches), bytes / KR_LARGE_BATCH_OF) + KR_FEW_BATCHES;
    c->max_headers = bytes / KR_SMALLEST_HEADER + 1;
    if (!is_full_of_headers) c->max_headers = kr_least(c->max_headers, 2 * c->max_rows + KR_FEW_HEADERS);
}

#endif
