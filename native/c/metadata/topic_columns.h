/* The partitions of an image as columns. */
#ifndef KRAFTLOG_METADATA_TOPIC_COLUMNS_H
#define KRAFTLOG_METADATA_TOPIC_COLUMNS_H

#include "metadata/topic_lists.h"

static inline int kr_compare_keys(const void *a, const void *b) {
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* The slots of some topics' partitions, topic after topic, each by partition id; returns how many there are. `out` has
 * room for all partitions. */
static inline int64_t kr_slots_of(const kr_topics *s, const int64_t *topics, int64_t n, int64_t *out) {
    const kr_partition *slots = kr_slots_at(s);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const kr_topic *topic = &kr_topics_at(s)[topics[i]];
        int64_t begin = count;
        for (int32_t slot = topic->first; slot < topic->first + topic->room; slot++)
            if (slots[slot].is_used) out[count++] = slot;
        if (!topic->sparse_room) continue;
        for (int32_t slot = topic->sparse_first; slot < topic->sparse_first + topic->sparse_room; slot++)
            if (slots[slot].is_used) out[count++] = slot;
        for (int64_t at = begin; at < count; at++) out[at] |= (int64_t)slots[out[at]].partition_id * ((int64_t)1 << 32);
        qsort(out + begin, (size_t)(count - begin), sizeof *out, kr_compare_keys);
        for (int64_t at = begin; at < count; at++) out[at] &= UINT32_MAX;
    }
    return count;
}

/* How many items a list of a partition is shown with. */
static inline int64_t kr_items_shown(const kr_list *lists, int list) {
    return list == KR_DIRECTORIES ? lists[KR_REPLICAS].count : lists[list].count;
}

/* Of some lines: of slots, or of those that were noted. */
static inline void kr_items_count(const kr_topics *s, const kr_partition *lines, const int64_t *at, int64_t n,
                                  int64_t *counts) {
    kr_list lists[KR_LISTS];
    memset(counts, 0, KR_LISTS * sizeof *counts);
    for (int64_t i = 0; i < n; i++) {
        kr_lists_of(s, &lines[at[i]], lists);
        for (int list = 0; list < KR_LISTS; list++) counts[list] += kr_items_shown(lists, list);
    }
}

/* The columns: numbers, and of each list where it ends and its items, for which kr_items_count says the room. */
typedef struct {
    int32_t *topics, *partition_ids, *leaders, *leader_epochs, *partition_epochs;
    int8_t *recovery_states;
    int32_t *ends[KR_LISTS], *items[KR_LISTS];
} kr_partition_columns;

static inline void kr_partitions_gather(const kr_topics *s, const kr_partition *lines, const int64_t *at, int64_t n,
                                        const kr_partition_columns *out) {
    kr_list lists[KR_LISTS];
    for (int list = 0; list < KR_LISTS; list++) out->ends[list][0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const kr_partition *p = &lines[at[i]];
        out->topics[i] = p->topic;
        out->partition_ids[i] = p->partition_id;
        out->leaders[i] = p->leader;
        out->leader_epochs[i] = p->leader_epoch;
        out->partition_epochs[i] = p->partition_epoch;
        out->recovery_states[i] = (int8_t)p->leader_recovery_state;
        kr_lists_of(s, p, lists);
        for (int list = 0; list < KR_LISTS; list++) {
            int64_t count = kr_items_shown(lists, list), words = kr_item_words(list), end = out->ends[list][i];
            int32_t *items = out->items[list] + words * end;
            if (count && lists[list].count) memcpy(items, lists[list].items, (size_t)(4 * words * count));
            if (count && !lists[list].count) memset(items, 0, (size_t)(4 * words * count));
            out->ends[list][i + 1] = (int32_t)(end + count);
        }
    }
}

#endif
