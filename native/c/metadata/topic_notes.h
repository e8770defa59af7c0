/* What groups of records changed: of each topic and partition, how it was before each group. */
#ifndef KRAFTLOG_METADATA_TOPIC_NOTES_H
#define KRAFTLOG_METADATA_TOPIC_NOTES_H

#include "metadata/topic_lists.h"

/* A topic or partition before a record; of several notes of one in a group the first counts. The line of a partition,
 * with a block of words of its own, is in `lines` at the same index. */
typedef struct {
    uint64_t low, high;
    int64_t group;
    int64_t name; /* of the topic */
    int32_t partition_id;
    uint8_t is_topic, was_there, spare[2];
} kr_note;

static inline int64_t kr_notes_count(const kr_topics *s) { return s->notes.size / (int64_t)sizeof(kr_note); }
static inline kr_note *kr_notes_at(const kr_topics *s) { return (kr_note *)(void *)s->notes.bytes; }
static inline kr_partition *kr_lines_at(const kr_topics *s) { return (kr_partition *)(void *)s->lines.bytes; }

/* Forgets the notes so far; takes new ones or none. */
static inline void kr_notes_begin(kr_topics *s, int is_noting) {
    for (int64_t i = 0; i < kr_notes_count(s); i++) kr_words_give(s, kr_lines_at(s)[i].words);
    s->notes.size = s->lines.size = 0;
    s->is_noting = is_noting;
    s->round++;
}

/* Before the record at an offset: a group that begins there is a round of its own. */
static inline void kr_note_group(kr_topics *s, int64_t offset) {
    if (!s->is_noting) return;
    for (; s->groups_left && s->groups->first_offset <= offset; s->groups++, s->groups_left--) {
        if (s->groups->number == s->group) continue;
        s->group = s->groups->number;
        s->round++;
    }
}

/* Returns 0 when memory is short. */
static inline int kr_note_take(kr_topics *s, const kr_note *note, const kr_partition *before) {
    kr_partition line = {0};
    if (!kr_reserve(&s->notes, (int64_t)sizeof *note) || !kr_reserve(&s->lines, (int64_t)sizeof line)) return 0;
    if (before) line = *before;
    if (line.words) {
        int64_t units = kr_words_at(s, line.words)[0];
        if (!kr_words_reserve(s, units)) return 0;
        line.words = kr_words_take(s, units);
        memcpy(kr_words_at(s, line.words), kr_words_at(s, before->words), (size_t)(units * KR_UNIT * 4));
    }
    kr_notes_at(s)[kr_notes_count(s)] = *note;
    s->notes.size += (int64_t)sizeof *note;
    memcpy(s->lines.bytes + s->lines.size, &line, sizeof line);
    s->lines.size += (int64_t)sizeof line;
    return 1;
}

/* Before a change of a partition; `p` is NULL for one that there is not yet. */
static inline int kr_note_partition(kr_topics *s, int32_t of_topic, int32_t partition_id, kr_partition *p) {
    if (!s->is_noting || (p && p->noted == s->round)) return 1;
    const kr_topic *topic = &kr_topics_at(s)[of_topic];
    kr_note note = {topic->low, topic->high, s->group, topic->name, partition_id, 0, p != 0, {0}};
    if (p) p->noted = s->round;
    return kr_note_take(s, &note, p);
}

static inline int kr_note_slab(kr_topics *s, int32_t topic, int32_t first, int32_t room) {
    for (int32_t slot = first; slot < first + room; slot++) {
        kr_partition *p = &kr_slots_at(s)[slot];
        if (p->is_used && !kr_note_partition(s, topic, p->partition_id, p)) return 0;
    }
    return 1;
}

/* Before a topic comes or goes with its partitions; `topic` is KR_NOWHERE for one that there is not. */
static inline int kr_note_topic(kr_topics *s, uint64_t low, uint64_t high, int32_t topic) {
    if (!s->is_noting) return 1;
    kr_note note = {low, high, s->group, KR_NOWHERE, 0, 1, topic != KR_NOWHERE, {0}};
    if (topic == KR_NOWHERE) return kr_note_take(s, &note, 0);
    const kr_topic *t = &kr_topics_at(s)[topic];
    note.name = t->name;
    return kr_note_take(s, &note, 0) && kr_note_slab(s, topic, t->first, t->room) &&
           kr_note_slab(s, topic, t->sparse_first, t->sparse_room);
}

#endif
