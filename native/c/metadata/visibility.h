/* What transactions of the metadata log mean for the records around them. */
#ifndef KRAFTLOG_METADATA_VISIBILITY_H
#define KRAFTLOG_METADATA_VISIBILITY_H

#include "batch/batch.h"

enum { KR_NO_TRANSACTION = -1, KR_COMMITTED = 1, KR_NEVER = -1 };

/* Transactions by their first offset, and the offsets of markers; both rise. */
typedef struct {
    int64_t n, markers_n;
    const int64_t *first, *last, *end;
    const int8_t *state;
    const int64_t *markers;
} kr_metadata_transactions;

/* The index of the last number that is not above an offset, -1 for none. Offsets of a log rise, so it is looked for
 * from the last one on; those of a damaged log may not. */
static inline int64_t kr_last_through(const int64_t *rising, int64_t n, int64_t offset, int64_t at) {
    if (at >= 0 && rising[at] > offset) {
        int64_t low = 0, high = at;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (rising[middle] <= offset)
                low = middle + 1;
            else
                high = middle;
        }
        return low - 1;
    }
    while (at + 1 < n && rising[at + 1] <= offset) at++;
    return at;
}

/* For each record the state of its transaction, whether a reader of what is committed sees it, and the offset at which
 * it became visible; control records lie in no transaction and are never visible. Returns the rows of the batches, of
 * which no more than `rows` are written. */
static inline int64_t kr_metadata_visible(const kr_metadata_transactions *t, const kr_batch_header *batches, int64_t n,
                                          const int64_t *offsets, int64_t rows, int8_t *states, uint8_t *shown,
                                          int64_t *visible_at) {
    int64_t at = -1, marker = -1, total = 0;
    for (int64_t batch = 0; batch < n; batch++) {
        int is_control = (batches[batch].attributes & KR_CONTROL_BIT) != 0;
        int64_t row = total;
        total += batches[batch].rows;
        for (; row < total && row < rows; row++) {
            int64_t offset = offsets[row];
            at = kr_last_through(t->first, t->n, offset, at);
            marker = kr_last_through(t->markers, t->markers_n, offset, marker);
            int is_within = at >= 0 && offset <= t->last[at] && !is_control;
            int is_marker = marker >= 0 && t->markers[marker] == offset;
            int state = is_within ? t->state[at] : KR_NO_TRANSACTION;
            int is_shown = (state == KR_NO_TRANSACTION || state == KR_COMMITTED) && !is_marker;
            states[row] = (int8_t)state;
            shown[row] = (uint8_t)is_shown;
            visible_at[row] = !is_shown || is_control ? KR_NEVER : is_within ? t->end[at] : offset;
        }
    }
    return total;
}

#endif
