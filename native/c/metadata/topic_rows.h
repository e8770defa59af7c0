/* Columns of the records that concern topics and partitions, as Arrow arrays have them. */
#ifndef KRAFTLOG_METADATA_TOPIC_ROWS_H
#define KRAFTLOG_METADATA_TOPIC_ROWS_H

#include "arrow/array.h"
#include "arrow/lent.h"
#include "metadata/topic_slots.h"

/* A column of lists, of which row i is items[ends[i], ends[i + 1]). */
typedef struct {
    const int32_t *ends;
    const uint8_t *validity; /* or NULL */
    int64_t first_bit;
    const int32_t *items;
    int64_t items_count;
    int is_there; /* whether any row may have a list */
} kr_list_column;

/* PartitionRecords, or PartitionChangeRecords, which have no epochs. */
typedef struct {
    int64_t n;
    const int64_t *offsets;
    const uint8_t *topic_ids;
    const int32_t *partition_ids, *leaders, *leader_epochs, *partition_epochs;
    const int8_t *recovery_states;
    kr_list_column lists[KR_LISTS];
    int others[KR_LISTS], others_count; /* the lists that are there, besides the ISR */
} kr_partition_rows;

/* Where the columns are among those of a batch. */
typedef struct {
    int offset, topic_id, partition_id, leader, recovery_state, leader_epoch, partition_epoch, lists[KR_LISTS];
} kr_partition_places;

static inline const void *kr_values_at(const struct ArrowArray *array, int64_t width) {
    const uint8_t *values = (const uint8_t *)array->buffers[1];
    return values ? values + width * array->offset : values;
}

static inline kr_list_column kr_lists_in(const struct ArrowArray *array, int list) {
    const struct ArrowArray *items = array->children[0];
    return (kr_list_column){
        .ends = (const int32_t *)kr_values_at(array, 4),
        .validity = array->null_count ? (const uint8_t *)array->buffers[0] : 0,
        .first_bit = array->offset,
        .items = (const int32_t *)kr_values_at(items, 4 * (list == KR_DIRECTORIES ? KR_ID_WORDS : 1)),
        .items_count = items->length,
        .is_there = array->length && array->null_count != array->length,
    };
}

/* The columns of a batch; a place of KR_NOWHERE stands for a column that there is not. */
static inline kr_partition_rows kr_partition_rows_of(const struct ArrowArray *batch, const kr_partition_places *at) {
    struct ArrowArray **columns = batch->children;
    kr_partition_rows rows = {.n = batch->length};
    rows.offsets = (const int64_t *)kr_values_at(columns[at->offset], 8);
    rows.topic_ids = (const uint8_t *)kr_values_at(columns[at->topic_id], 16);
    rows.partition_ids = (const int32_t *)kr_values_at(columns[at->partition_id], 4);
    rows.leaders = (const int32_t *)kr_values_at(columns[at->leader], 4);
    rows.recovery_states = (const int8_t *)kr_values_at(columns[at->recovery_state], 1);
    if (at->leader_epoch >= 0) rows.leader_epochs = (const int32_t *)kr_values_at(columns[at->leader_epoch], 4);
    if (at->partition_epoch >= 0)
        rows.partition_epochs = (const int32_t *)kr_values_at(columns[at->partition_epoch], 4);
    for (int list = 0; list < KR_LISTS; list++) {
        rows.lists[list] = kr_lists_in(columns[at->lists[list]], list);
        if (list != KR_ISR && rows.lists[list].is_there) rows.others[rows.others_count++] = list;
    }
    return rows;
}

static inline int kr_list_is_given(const kr_list_column *c, int64_t row) {
    return c->is_there && kr_is_valid(c->validity, c->first_bit + row);
}

/* A list that is given; 0 when it is not within the items. */
static inline int kr_list_at(const kr_list_column *c, int64_t row, int list, kr_list *out) {
    int64_t start = c->ends[row], stop = c->ends[row + 1];
    if (start < 0 || stop < start || stop > c->items_count) return 0;
    *out = (kr_list){c->items + (list == KR_DIRECTORIES ? KR_ID_WORDS : 1) * start, stop - start};
    return 1;
}

static inline void kr_topic_id_at(const uint8_t *ids, int64_t row, uint64_t *low, uint64_t *high) {
    memcpy(low, ids + 16 * row, 8);
    memcpy(high, ids + 16 * row + 8, 8);
}

#endif
