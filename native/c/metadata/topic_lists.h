/* The lists of partitions: a short ISR is in the partition's line, the others are in its block of words. */
#ifndef KRAFTLOG_METADATA_TOPIC_LISTS_H
#define KRAFTLOG_METADATA_TOPIC_LISTS_H

#include "metadata/topic_slots.h"

static inline int64_t kr_item_words(int list) { return list == KR_DIRECTORIES ? KR_ID_WORDS : 1; }

static inline int kr_unit_class(int64_t units) {
    return units <= KR_EXACT_UNITS ? (int)units - 1 : KR_EXACT_UNITS + kr_order_of(units);
}

/* Units of a block in which so many fit. */
static inline int64_t kr_units_given(int64_t units) {
    return units <= KR_EXACT_UNITS ? units : (int64_t)1 << kr_order_of(units);
}

/* Call kr_words_reserve before. */
static inline uint32_t kr_words_take(kr_topics *s, int64_t units) {
    uint32_t *free_one = &s->free_words[kr_unit_class(units)], first = *free_one;
    if (first) {
        *free_one = kr_words_at(s, first)[1];
    } else {
        first = (uint32_t)(s->words.size / (KR_UNIT * 4));
        s->words.size += kr_units_given(units) * KR_UNIT * 4;
    }
    kr_words_at(s, first)[0] = (uint32_t)kr_units_given(units);
    return first;
}

static inline void kr_words_give(kr_topics *s, uint32_t first) {
    if (!first) return;
    uint32_t *words = kr_words_at(s, first), *free_one = &s->free_words[kr_unit_class(words[0])];
    words[1] = *free_one;
    *free_one = first;
}

/* Room for a block; words may move. 0 when memory is short. */
static inline int kr_words_reserve(kr_topics *s, int64_t units) {
    return kr_reserve(&s->words, kr_units_given(units) * KR_UNIT * 4);
}

/* All lists of a partition, where they are: valid until words are reserved or the partition changes. */
static inline void kr_lists_of(const kr_topics *s, const kr_partition *p, kr_list *lists) {
    memset(lists, 0, KR_LISTS * sizeof *lists);
    if (p->words) {
        const uint32_t *words = kr_words_at(s, p->words);
        const int32_t *items = (const int32_t *)(const void *)(words + KR_UNIT);
        for (int list = 0; list < KR_LISTS; list++) {
            lists[list] = (kr_list){items, words[1 + list]};
            items += kr_item_words(list) * words[1 + list];
        }
    }
    if (p->isr_length != KR_LONG_ISR) lists[KR_ISR] = (kr_list){p->isr, p->isr_length};
}

static inline int64_t kr_lists_units(const kr_list *lists) {
    int64_t words = 0;
    for (int list = 0; list < KR_LISTS; list++)
        if (list != KR_ISR || lists[list].count > KR_SHORT_ISR) words += kr_item_words(list) * lists[list].count;
    return words ? 1 + (words + KR_UNIT - 1) / KR_UNIT : 0;
}

/* Gives a partition its lists, which may be its old ones in part. Call kr_words_reserve before. */
static inline void kr_lists_put(kr_topics *s, kr_partition *p, const kr_list *lists) {
    int64_t units = kr_lists_units(lists);
    uint32_t old = p->words, made = units ? kr_words_take(s, units) : 0;
    kr_list isr = lists[KR_ISR];
    if (units) {
        uint32_t *words = kr_words_at(s, made);
        uint8_t *items = (uint8_t *)(words + KR_UNIT);
        for (int list = 0; list < KR_LISTS; list++) {
            int64_t count = list == KR_ISR && isr.count <= KR_SHORT_ISR ? 0 : lists[list].count;
            int64_t size = 4 * kr_item_words(list) * count;
            words[1 + list] = (uint32_t)count;
            if (size) memcpy(items, lists[list].items, (size_t)size);
            items += size;
        }
    }
    if (isr.count <= KR_SHORT_ISR) {
        if (isr.items != p->isr && isr.count) memcpy(p->isr, isr.items, 4 * (size_t)isr.count);
        p->isr_length = (uint8_t)isr.count;
    } else {
        p->isr_length = KR_LONG_ISR;
    }
    p->words = made;
    kr_words_give(s, old);
    uint8_t has_elr = lists[KR_ELR].count || lists[KR_LAST_KNOWN_ELR].count;
    s->with_elr += has_elr - p->has_elr;
    p->has_elr = has_elr;
}

/* Room for lists that come from elsewhere and from the partition itself: those of `given`, its own where it has none. 0
 * when memory is short. */
static inline int kr_lists_replace(kr_topics *s, kr_partition *p, const kr_list *given, int which) {
    kr_list lists[KR_LISTS];
    for (int round = 0; round < 2; round++) { /* words may have moved after the first one */
        kr_lists_of(s, p, lists);
        for (int list = 0; list < KR_LISTS; list++)
            if (which >> list & 1) lists[list] = given[list];
        if (!round && !kr_words_reserve(s, kr_lists_units(lists))) return 0;
    }
    kr_lists_put(s, p, lists);
    return 1;
}

static inline void kr_slab_drop(kr_topics *s, int32_t first, int32_t room) {
    kr_partition *slots = kr_slots_at(s) + first;
    for (int32_t i = 0; i < room; i++) {
        if (!slots[i].is_used) continue;
        kr_words_give(s, slots[i].words);
        s->with_elr -= slots[i].has_elr;
        s->partitions_count--;
    }
    kr_slab_give(s, first, room);
}

static inline void kr_partitions_drop(kr_topics *s, kr_topic *topic) {
    kr_slab_drop(s, topic->first, topic->room);
    kr_slab_drop(s, topic->sparse_first, topic->sparse_room);
    topic->room = topic->partitions = topic->sparse_room = topic->sparse_partitions = 0;
}

#endif
