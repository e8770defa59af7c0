/* Topics and partitions of a metadata image: a topic owns a slab of slots, one line of the cache for each partition.
 *
 * What most changes need of a partition is in its line; its longer lists are in one block of words. Partitions lie in
 * the slab at their ids. An id far beyond the number of a topic's partitions lies in a second slab, by hash. Partitions
 * go with their topic alone, so nothing is ever taken out of a slab. */
#ifndef KRAFTLOG_METADATA_TOPIC_SLOTS_H
#define KRAFTLOG_METADATA_TOPIC_SLOTS_H

#include "base/hash_index.h"

enum { KR_ISR, KR_REPLICAS, KR_REMOVING, KR_ADDING, KR_ELR, KR_LAST_KNOWN_ELR, KR_DIRECTORIES, KR_LISTS };
enum { KR_NOWHERE = -1, KR_SLAB_ORDERS = 31, KR_SPARSE_TOPICS = 4 };
enum { KR_UNIT = 8, KR_EXACT_UNITS = 64, KR_UNIT_CLASSES = KR_EXACT_UNITS + 32, KR_ID_WORDS = 4 };
enum { KR_SHORT_ISR = 8, KR_LONG_ISR = 255 };

/* A partition. Its block of words begins with a unit: units of the block, then how many items each list has. No
 * directories stand for Kafka's MIGRATING of each replica. */
typedef struct {
    int32_t partition_id, leader, leader_epoch, partition_epoch;
    int32_t isr[KR_SHORT_ISR];
    int32_t topic;  /* of a free slab, the next one */
    uint32_t words; /* the first unit of its block, 0 for none */
    uint8_t isr_length, leader_recovery_state, is_used, has_elr;
    uint32_t noted; /* the last round of notes that has it */
} kr_partition;
_Static_assert(sizeof(kr_partition) == 64, "a line of the cache");

typedef struct {
    uint64_t low, high; /* the id */
    int32_t first, room, partitions;
    int32_t sparse_first, sparse_room, sparse_partitions;
    int64_t name; /* its number; KR_NOWHERE for a free one */
    int32_t next; /* of a free one, the next free one */
    int32_t spare[3];
} kr_topic;
_Static_assert(sizeof(kr_topic) == 64, "a line of the cache");

/* Items of a list; a directory has KR_ID_WORDS. */
typedef struct {
    const int32_t *items;
    int64_t count;
} kr_list;

/* Records from an offset on whose changes count as one, and their number. */
typedef struct {
    int64_t first_offset, number;
} kr_change_step;

typedef struct {
    kr_growing topics, slots, words;
    kr_hash_index index;     /* of topics, by their ids */
    kr_growing notes, lines; /* what changed, see metadata/topic_notes.h */
    uint32_t round;
    int is_noting;
    const kr_change_step *groups; /* of the records that are being applied, those that have not begun */
    int64_t groups_left, group;
    int64_t topics_count, partitions_count, with_elr;
    int32_t free_topic;
    int32_t free_slabs[KR_SLAB_ORDERS];
    uint32_t free_words[KR_UNIT_CLASSES];
} kr_topics;

static inline kr_topic *kr_topics_at(const kr_topics *s) { return (kr_topic *)(void *)s->topics.bytes; }
static inline kr_partition *kr_slots_at(const kr_topics *s) { return (kr_partition *)(void *)s->slots.bytes; }
static inline int64_t kr_topics_end(const kr_topics *s) { return s->topics.size / (int64_t)sizeof(kr_topic); }
static inline uint32_t *kr_words_at(const kr_topics *s, uint32_t unit) {
    return (uint32_t *)(void *)s->words.bytes + (int64_t)KR_UNIT * unit;
}

static inline uint32_t kr_topic_hash(uint64_t low, uint64_t high) {
    uint64_t value = low ^ (high * 0x9E3779B97F4A7C15ull);
    value = (value ^ (value >> 32)) * 0xD6E8FEB86659FD93ull;
    return (uint32_t)((value ^ (value >> 32)) >> 33);
}

/* An empty image; 0 when memory is short. */
static inline int kr_topics_open(kr_topics *s) {
    memset(s, 0, sizeof *s);
    s->free_topic = KR_NOWHERE;
    for (int i = 0; i < KR_SLAB_ORDERS; i++) s->free_slabs[i] = KR_NOWHERE;
    if (!kr_reserve(&s->words, KR_UNIT * 4)) return 0;
    s->words.size = KR_UNIT * 4; /* unit 0 is no block */
    return kr_index_open(&s->index);
}

static inline void kr_topics_close(kr_topics *s) {
    kr_growing *all[] = {&s->topics, &s->slots, &s->words, &s->index.entries, &s->notes, &s->lines};
    for (int i = 0; i < 6; i++) kr_growing_free(all[i]);
}

/* The same in memory of its own; 0 when memory is short. */
static inline int kr_topics_copy(kr_topics *to, const kr_topics *from) {
    *to = *from;
    const kr_growing *sources[] = {&from->topics,        &from->slots, &from->words,
                                   &from->index.entries, &from->notes, &from->lines};
    kr_growing *targets[] = {&to->topics, &to->slots, &to->words, &to->index.entries, &to->notes, &to->lines};
    for (int i = 0; i < 6; i++) *targets[i] = (kr_growing){0, 0, 0};
    for (int i = 0; i < 6; i++) {
        if (!sources[i]->size) continue;
        if (!kr_reserve(targets[i], sources[i]->size)) return 0;
        memcpy(targets[i]->bytes, sources[i]->bytes, (size_t)sources[i]->size);
        targets[i]->size = sources[i]->size;
    }
    return 1;
}

/* The entry of a topic, or the empty one where it would be. */
static inline int64_t kr_topic_entry(const kr_topics *s, uint64_t low, uint64_t high) {
    const kr_hash_index *x = &s->index;
    const kr_topic *topics = kr_topics_at(s);
    const uint32_t hash = kr_topic_hash(low, high);
    for (int64_t at = kr_index_seek(x, hash, kr_index_home(x, hash));;
         at = kr_index_seek(x, hash, kr_index_next(x, at))) {
        int32_t topic = kr_entry_slot(kr_index_entries(x)[at]);
        if (topic == KR_NO_SLOT || (topics[topic].low == low && topics[topic].high == high)) return at;
    }
}

static inline int32_t kr_topic_find(const kr_topics *s, uint64_t low, uint64_t high) {
    return kr_entry_slot(kr_index_entries(&s->index)[kr_topic_entry(s, low, high)]);
}

/* A topic that is not there yet; KR_NOWHERE when memory is short. */
static inline int32_t kr_topic_add(kr_topics *s, uint64_t low, uint64_t high) {
    if (!kr_index_reserve(&s->index, KR_SPARSE_TOPICS)) return KR_NOWHERE;
    int32_t topic = s->free_topic;
    if (topic == KR_NOWHERE) {
        if (!kr_reserve(&s->topics, (int64_t)sizeof(kr_topic))) return KR_NOWHERE;
        topic = (int32_t)kr_topics_end(s);
        s->topics.size += (int64_t)sizeof(kr_topic);
    } else {
        s->free_topic = kr_topics_at(s)[topic].next;
    }
    kr_topics_at(s)[topic] = (kr_topic){.low = low, .high = high};
    kr_index_put(&s->index, kr_entry_of(kr_topic_hash(low, high), topic));
    s->topics_count++;
    return topic;
}

/* Slabs of a power of two of slots. */
static inline int32_t kr_slab_take(kr_topics *s, int order) {
    int64_t size = (int64_t)sizeof(kr_partition) << order;
    int32_t first = s->free_slabs[order];
    if (first == KR_NOWHERE) {
        if (!kr_reserve(&s->slots, size)) return KR_NOWHERE;
        first = (int32_t)(s->slots.size / (int64_t)sizeof(kr_partition));
        s->slots.size += size;
    } else {
        s->free_slabs[order] = kr_slots_at(s)[first].topic;
    }
    memset(&kr_slots_at(s)[first], 0, (size_t)size);
    return first;
}

static inline int kr_order_of(int64_t slots) { return slots <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)slots - 1); }

static inline void kr_slab_give(kr_topics *s, int32_t first, int32_t room) {
    if (!room) return;
    int order = kr_order_of(room);
    kr_partition *slots = kr_slots_at(s) + first;
    for (int32_t i = 0; i < room; i++) slots[i].is_used = 0;
    slots->topic = s->free_slabs[order];
    s->free_slabs[order] = first;
}

/* Where a partition is in the slab of ids without order, or the free slot where it would be. */
static inline int32_t kr_sparse_slot(const kr_topics *s, int32_t first, int32_t room, int32_t partition_id) {
    const kr_partition *slots = kr_slots_at(s) + first;
    uint32_t mask = (uint32_t)room - 1, at = ((uint32_t)partition_id * 0x9E3779B1u) >> 7 & mask;
    while (slots[at].is_used && slots[at].partition_id != partition_id) at = (at + 1) & mask;
    return first + (int32_t)at;
}

static inline int32_t kr_partition_find(const kr_topics *s, const kr_topic *topic, int32_t partition_id) {
    const kr_partition *slots = kr_slots_at(s);
    if ((uint32_t)partition_id < (uint32_t)topic->room && slots[topic->first + partition_id].is_used)
        return topic->first + partition_id;
    if (!topic->sparse_room) return KR_NOWHERE;
    int32_t slot = kr_sparse_slot(s, topic->sparse_first, topic->sparse_room, partition_id);
    return slots[slot].is_used ? slot : KR_NOWHERE;
}

/* A larger slab of a topic, with what was in the smaller one; 0 when memory is short. */
static inline int kr_slab_enlarge(kr_topics *s, kr_topic *topic, int64_t room) {
    int order = kr_order_of(room);
    int32_t first = kr_slab_take(s, order);
    if (first == KR_NOWHERE) return 0;
    kr_partition *slots = kr_slots_at(s);
    if (topic->room) memcpy(&slots[first], &slots[topic->first], sizeof *slots * (size_t)topic->room);
    kr_slab_give(s, topic->first, topic->room);
    topic->first = first;
    topic->room = (int32_t)((int64_t)1 << order);
    return 1;
}

static inline int kr_sparse_enlarge(kr_topics *s, kr_topic *topic) {
    int order = kr_order_of(2 * (int64_t)topic->sparse_room + 4);
    int32_t first = kr_slab_take(s, order), room = (int32_t)((int64_t)1 << order);
    if (first == KR_NOWHERE) return 0;
    kr_partition *slots = kr_slots_at(s);
    for (int32_t i = 0; i < topic->sparse_room; i++) {
        const kr_partition *one = &slots[topic->sparse_first + i];
        if (one->is_used) slots[kr_sparse_slot(s, first, room, one->partition_id)] = *one;
    }
    kr_slab_give(s, topic->sparse_first, topic->sparse_room);
    topic->sparse_first = first;
    topic->sparse_room = room;
    return 1;
}

/* A partition that is not there yet, behind which so many come with the ids that follow; KR_NOWHERE when memory is
 * short.
 */
static inline int32_t kr_partition_add(kr_topics *s, int32_t of_topic, int32_t partition_id, int64_t following) {
    kr_topic *topic = &kr_topics_at(s)[of_topic];
    int32_t slot;
    if (partition_id >= 0 && (partition_id < topic->room || partition_id <= 2 * (int64_t)topic->partitions + 3)) {
        if (partition_id >= topic->room && !kr_slab_enlarge(s, topic, partition_id + following + 1)) return KR_NOWHERE;
        slot = topic->first + partition_id;
        topic->partitions++;
    } else {
        if (2 * (int64_t)topic->sparse_partitions >= topic->sparse_room && !kr_sparse_enlarge(s, topic))
            return KR_NOWHERE;
        slot = kr_sparse_slot(s, topic->sparse_first, topic->sparse_room, partition_id);
        topic->sparse_partitions++;
    }
    kr_partition *made = &kr_slots_at(s)[slot];
    made->is_used = 1;
    made->topic = of_topic;
    made->partition_id = partition_id;
    s->partitions_count++;
    return slot;
}

#endif
