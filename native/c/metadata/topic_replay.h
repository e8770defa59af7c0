/* Kafka's TopicsDelta over columns: the records of a chunk that concern topics and partitions, in the order of the log.
 */
#ifndef KRAFTLOG_METADATA_TOPIC_REPLAY_H
#define KRAFTLOG_METADATA_TOPIC_REPLAY_H

#include "metadata/topic_notes.h"
#include "metadata/topic_rows.h"

enum { KR_OF_TOPIC, KR_OF_REMOVAL, KR_OF_PARTITION, KR_OF_CHANGE, KR_OF_CLEARING, KR_TOPIC_KINDS };
enum { KR_APPLIED, KR_UNKNOWN_TOPIC, KR_UNKNOWN_PARTITION, KR_BAD_DIRECTORIES, KR_BAD_RECOVERY_STATE };
enum { KR_NO_MEMORY_LEFT = -1, KR_BAD_LIST = -2 };
enum { KR_NO_LEADER_CHANGE = -2, KR_NO_RECOVERY_CHANGE = -1, KR_CHANGES_AT_ONCE = 128, KR_EVERY_TOPIC = -1 };

/* A topic that has a name of a ClearElrRecord: numbers of its name among all names, and among those of the records. */
typedef struct {
    int64_t topic, name, cleared;
} kr_candidate;

typedef struct {
    int64_t n;
    const int64_t *offsets;
    const uint8_t *ids;
} kr_topic_rows;

/* A chunk. Names of new topics are numbered from `first_name` on; `cleared` says which of them a ClearElrRecord has.
 * Into `removed` goes the name of each topic that is removed, into `faults` what kind of record, its row and the fault.
 */
typedef struct {
    kr_topic_rows topics, removals;
    kr_partition_rows partitions, changes;
    int64_t clearings;
    const int64_t *clearing_offsets, *clearing_names;
    int64_t first_name;
    const int64_t *cleared;
    kr_candidate *candidates;
    int64_t candidates_count, faults_count;
    int64_t *removed, *faults;
} kr_topic_chunk;

static inline int32_t kr_more(int32_t epoch) { return (int32_t)((uint32_t)epoch + 1); }

static inline int kr_are_known(const kr_list *directories) {
    int32_t known = 0;
    for (int64_t i = 0; i < KR_ID_WORDS * directories->count; i++) known |= directories->items[i];
    return known != 0;
}

/* Takes the lists of a row; returns which are given, or KR_BAD_LIST. */
static inline int kr_lists_at(const kr_partition_rows *rows, int64_t row, kr_list *lists) {
    int given = 0;
    for (int list = 0; list < KR_LISTS; list++) {
        lists[list] = (kr_list){0, 0};
        if (!kr_list_is_given(&rows->lists[list], row)) continue;
        if (!kr_list_at(&rows->lists[list], row, list, &lists[list])) return KR_BAD_LIST;
        given |= 1 << list;
    }
    return given;
}

/* How many rows behind one, up to `end`, are of the same topic and of the partitions that follow. */
static inline int64_t kr_partitions_following(const kr_partition_rows *rows, int64_t row, int64_t end) {
    int64_t next = row + 1;
    while (next < end && rows->partition_ids[next] == rows->partition_ids[row] + (next - row) &&
           memcmp(rows->topic_ids + 16 * next, rows->topic_ids + 16 * row, 16) == 0)
        next++;
    return next - row - 1;
}

/* A PartitionRecord, of those up to `end`. */
static inline int kr_partition_put(kr_topics *s, const kr_partition_rows *rows, int64_t row, int64_t end) {
    uint64_t low, high;
    kr_list lists[KR_LISTS];
    kr_topic_id_at(rows->topic_ids, row, &low, &high);
    int32_t topic = kr_topic_find(s, low, high), id = rows->partition_ids[row];
    if (kr_lists_at(rows, row, lists) < 0) return KR_BAD_LIST;
    if (topic == KR_NOWHERE) return KR_UNKNOWN_TOPIC;
    kr_list *directories = &lists[KR_DIRECTORIES];
    if (directories->count && directories->count != lists[KR_REPLICAS].count) return KR_BAD_DIRECTORIES;
    if (rows->recovery_states[row] != 0 && rows->recovery_states[row] != 1) return KR_BAD_RECOVERY_STATE;
    if (!kr_are_known(directories)) directories->count = 0;
    int32_t slot = kr_partition_find(s, &kr_topics_at(s)[topic], id);
    if (!kr_note_partition(s, topic, id, slot == KR_NOWHERE ? 0 : &kr_slots_at(s)[slot])) return KR_NO_MEMORY_LEFT;
    if (slot == KR_NOWHERE) {
        int is_in_room = id >= 0 && id < kr_topics_at(s)[topic].room;
        slot = kr_partition_add(s, topic, id, is_in_room ? 0 : kr_partitions_following(rows, row, end));
    }
    if (slot == KR_NOWHERE || !kr_words_reserve(s, kr_lists_units(lists))) return KR_NO_MEMORY_LEFT;
    kr_partition *p = &kr_slots_at(s)[slot];
    kr_lists_put(s, p, lists);
    p->noted = s->round;
    p->leader = rows->leaders[row];
    p->leader_recovery_state = (uint8_t)rows->recovery_states[row];
    p->leader_epoch = rows->leader_epochs[row];
    p->partition_epoch = rows->partition_epochs[row];
    return KR_APPLIED;
}

/* All that a PartitionChangeRecord changes but leader and epochs, as PartitionRegistration.merge does. */
static int kr_change_lists(kr_topics *s, const kr_partition_rows *rows, int64_t row, kr_partition *p) {
    kr_list lists[KR_LISTS], old[KR_LISTS];
    int given = kr_lists_at(rows, row, lists), recovery = rows->recovery_states[row];
    if (given < 0) return KR_BAD_LIST;
    if (recovery != KR_NO_RECOVERY_CHANGE && recovery != 0 && recovery != 1) return KR_BAD_RECOVERY_STATE;
    kr_lists_of(s, p, old);
    int are_replicas_given = given >> KR_REPLICAS & 1, are_directories_given = given >> KR_DIRECTORIES & 1;
    int64_t replicas = (are_replicas_given ? lists : old)[KR_REPLICAS].count;
    kr_list *directories = are_directories_given ? &lists[KR_DIRECTORIES] : &old[KR_DIRECTORIES];
    int are_known = kr_are_known(directories);
    if (directories->count && directories->count != replicas &&
        (are_known || (are_replicas_given && are_directories_given)))
        return KR_BAD_DIRECTORIES;
    if (!are_known) directories->count = 0;
    if (given && !kr_lists_replace(s, p, lists, given)) return KR_NO_MEMORY_LEFT;
    if (recovery != KR_NO_RECOVERY_CHANGE) p->leader_recovery_state = (uint8_t)recovery;
    return KR_APPLIED;
}

/* A PartitionChangeRecord of a partition, most of which change no more than leader and ISR. */
KR_ALWAYS_INLINE int kr_partition_change(kr_topics *s, const kr_partition_rows *rows, int64_t row, kr_partition *p) {
    int is_rare = rows->recovery_states[row] != KR_NO_RECOVERY_CHANGE;
    for (int i = 0; i < rows->others_count; i++) is_rare |= kr_list_is_given(&rows->lists[rows->others[i]], row);
    const kr_list_column *isr = &rows->lists[KR_ISR];
    if (kr_list_is_given(isr, row) && !is_rare) {
        kr_list given;
        if (!kr_list_at(isr, row, KR_ISR, &given)) return KR_BAD_LIST;
        if (KR_LIKELY(given.count <= KR_SHORT_ISR)) {
            p->isr_length = (uint8_t)given.count;
            if (KR_LIKELY(isr->ends[row] + KR_SHORT_ISR <= isr->items_count))
                memcpy(p->isr, given.items, sizeof p->isr);
            else if (given.count)
                memcpy(p->isr, given.items, 4 * (size_t)given.count);
        } else {
            is_rare = 1;
        }
    }
    if (is_rare) {
        int fault = kr_change_lists(s, rows, row, p);
        if (fault) return fault;
    }
    int32_t leader = rows->leaders[row], is_new = leader != KR_NO_LEADER_CHANGE;
    p->leader = is_new ? leader : p->leader;
    p->leader_epoch = is_new ? kr_more(p->leader_epoch) : p->leader_epoch;
    p->partition_epoch = kr_more(p->partition_epoch);
    return KR_APPLIED;
}

static inline int kr_note_refusal(kr_topic_chunk *chunk, int kind, int64_t row, int fault) {
    if (KR_LIKELY(!fault)) return 1;
    if (fault < 0) return 0;
    int64_t *noted = chunk->faults + 3 * chunk->faults_count++;
    noted[0] = kind;
    noted[1] = row;
    noted[2] = fault;
    return 1;
}

/* PartitionChangeRecords [row, end). Nearly all the time is spent on loads from memory, so those of many rows are begun
 * before the first is needed. */
static inline int kr_partitions_change(kr_topics *s, kr_topic_chunk *chunk, int64_t row, int64_t end) {
    const kr_partition_rows *rows = &chunk->changes;
    int32_t found[KR_CHANGES_AT_ONCE];
    while (row < end) {
        int count = end - row < KR_CHANGES_AT_ONCE ? (int)(end - row) : KR_CHANGES_AT_ONCE;
        const int64_t *entries = kr_index_entries(&s->index);
        const kr_topic *topics = kr_topics_at(s);
        kr_partition *slots = kr_slots_at(s); /* a change never adds one */
        for (int i = 0; i < count; i++) {
            uint64_t low, high;
            kr_topic_id_at(rows->topic_ids, row + i, &low, &high);
            found[i] = (int32_t)kr_index_home(&s->index, kr_topic_hash(low, high));
            __builtin_prefetch(&entries[found[i]]);
        }
        for (int i = 0; i < count; i++) {
            found[i] = kr_entry_slot(entries[found[i]]);
            if (found[i] != KR_NOWHERE) __builtin_prefetch(&topics[found[i]]);
        }
        for (int i = 0; i < count; i++) {
            uint64_t low, high;
            kr_topic_id_at(rows->topic_ids, row + i, &low, &high);
            int32_t topic = found[i], id = rows->partition_ids[row + i];
            if (topic != KR_NOWHERE && (topics[topic].low != low || topics[topic].high != high))
                topic = kr_topic_find(s, low, high);
            found[i] = KR_NOWHERE;
            if (topic == KR_NOWHERE) continue;
            if (topics[topic].sparse_room || (uint32_t)id >= (uint32_t)topics[topic].room) {
                found[i] = kr_partition_find(s, &topics[topic], id);
                continue;
            }
            found[i] = topics[topic].first + id;
            __builtin_prefetch(&slots[found[i]], 1);
        }
        for (int i = 0; i < count; i++) {
            int is_known = found[i] != KR_NOWHERE && slots[found[i]].is_used;
            kr_note_group(s, rows->offsets[row + i]);
            if (is_known &&
                !kr_note_partition(s, slots[found[i]].topic, slots[found[i]].partition_id, &slots[found[i]]))
                return KR_NO_MEMORY_LEFT;
            int fault = is_known ? kr_partition_change(s, rows, row + i, &slots[found[i]]) : KR_UNKNOWN_PARTITION;
            if (!kr_note_refusal(chunk, KR_OF_CHANGE, row + i, fault)) return fault;
        }
        row += count;
    }
    return KR_APPLIED;
}

static inline int kr_topic_put(kr_topics *s, kr_topic_chunk *chunk, int64_t row) {
    uint64_t low, high;
    kr_topic_id_at(chunk->topics.ids, row, &low, &high);
    int32_t topic = kr_topic_find(s, low, high);
    if (!kr_note_topic(s, low, high, topic)) return KR_NO_MEMORY_LEFT;
    if (topic == KR_NOWHERE)
        topic = kr_topic_add(s, low, high);
    else
        kr_partitions_drop(s, &kr_topics_at(s)[topic]);
    if (topic == KR_NOWHERE) return KR_NO_MEMORY_LEFT;
    kr_topics_at(s)[topic].name = chunk->first_name + row;
    if (chunk->cleared[row] != KR_NOWHERE)
        chunk->candidates[chunk->candidates_count++] =
            (kr_candidate){topic, chunk->first_name + row, chunk->cleared[row]};
    return KR_APPLIED;
}

static inline int kr_topic_remove(kr_topics *s, kr_topic_chunk *chunk, int64_t row) {
    uint64_t low, high;
    kr_topic_id_at(chunk->removals.ids, row, &low, &high);
    int64_t entry = kr_topic_entry(s, low, high);
    int32_t at = kr_entry_slot(kr_index_entries(&s->index)[entry]);
    chunk->removed[row] = KR_NOWHERE;
    if (at == KR_NOWHERE) return KR_UNKNOWN_TOPIC;
    if (!kr_note_topic(s, low, high, at)) return KR_NO_MEMORY_LEFT;
    kr_topic *topic = &kr_topics_at(s)[at];
    chunk->removed[row] = topic->name;
    kr_partitions_drop(s, topic);
    kr_index_remove(&s->index, entry);
    topic->name = KR_NOWHERE;
    topic->next = s->free_topic;
    s->free_topic = at;
    s->topics_count--;
    return KR_APPLIED;
}

static inline int kr_slab_clear(kr_topics *s, int64_t first, int64_t room) {
    kr_list none[KR_LISTS] = {{0, 0}};
    for (int64_t slot = first; slot < first + room; slot++) {
        kr_partition *p = &kr_slots_at(s)[slot];
        if (!p->is_used || !p->has_elr) continue;
        if (!kr_note_partition(s, p->topic, p->partition_id, p)) return KR_NO_MEMORY_LEFT;
        if (!kr_lists_replace(s, p, none, 1 << KR_ELR | 1 << KR_LAST_KNOWN_ELR)) return KR_NO_MEMORY_LEFT;
        p->partition_epoch = kr_more(p->partition_epoch);
    }
    return KR_APPLIED;
}

static inline int kr_elr_clear(kr_topics *s, const kr_topic_chunk *chunk, int64_t row) {
    int64_t name = chunk->clearing_names[row];
    if (name == KR_EVERY_TOPIC)
        return s->with_elr ? kr_slab_clear(s, 0, s->slots.size / (int64_t)sizeof(kr_partition)) : KR_APPLIED;
    int fault = KR_UNKNOWN_TOPIC;
    for (int64_t i = 0; i < chunk->candidates_count; i++) {
        const kr_candidate *one = &chunk->candidates[i];
        const kr_topic *topic = &kr_topics_at(s)[one->topic];
        if (one->cleared != name || topic->name != one->name) continue;
        fault = kr_slab_clear(s, topic->first, topic->room);
        if (!fault) fault = kr_slab_clear(s, topic->sparse_first, topic->sparse_room);
        if (fault) break;
    }
    return fault;
}

/* Applies a chunk; returns 0, or KR_NO_MEMORY_LEFT or KR_BAD_LIST after a part of it. */
static int kr_topics_replay(kr_topics *s, kr_topic_chunk *chunk) {
    const int64_t *offsets[KR_TOPIC_KINDS] = {chunk->topics.offsets, chunk->removals.offsets, chunk->partitions.offsets,
                                              chunk->changes.offsets, chunk->clearing_offsets};
    int64_t counts[KR_TOPIC_KINDS] = {chunk->topics.n, chunk->removals.n, chunk->partitions.n, chunk->changes.n,
                                      chunk->clearings};
    int64_t rows[KR_TOPIC_KINDS] = {0};
    for (;;) {
        int kind = KR_NOWHERE;
        int64_t first = INT64_MAX, limit = INT64_MAX;
        for (int other = 0; other < KR_TOPIC_KINDS; other++) {
            if (rows[other] == counts[other]) continue;
            int64_t offset = offsets[other][rows[other]];
            if (kind == KR_NOWHERE || offset < first) {
                limit = first;
                first = offset;
                kind = other;
            } else if (offset < limit) {
                limit = offset;
            }
        }
        if (kind == KR_NOWHERE) return KR_APPLIED;
        int64_t row = rows[kind], end = row + 1;
        while (end < counts[kind] && offsets[kind][end] <= limit) end++;
        rows[kind] = end;
        if (kind == KR_OF_CHANGE) {
            int failed = kr_partitions_change(s, chunk, row, end);
            if (failed) return failed;
            continue;
        }
        for (; row < end; row++) {
            kr_note_group(s, offsets[kind][row]);
            int fault = kind == KR_OF_TOPIC       ? kr_topic_put(s, chunk, row)
                        : kind == KR_OF_REMOVAL   ? kr_topic_remove(s, chunk, row)
                        : kind == KR_OF_PARTITION ? kr_partition_put(s, &chunk->partitions, row, end)
                                                  : kr_elr_clear(s, chunk, row);
            if (!kr_note_refusal(chunk, kind, row, fault)) return fault;
        }
    }
}

#endif
