"""Declarations of native/c/metadata/topic_*.h."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from kraftlog._native.c_arrow cimport ArrowArray


cdef extern from "metadata/topic_slots.h" nogil:
    enum:
        KR_LISTS
        KR_NOWHERE

    ctypedef struct kr_topic:
        uint64_t low, high
        int64_t name

    ctypedef struct kr_partition:
        pass

    ctypedef struct kr_change_step:
        pass

    ctypedef struct kr_topics:
        int64_t topics_count, partitions_count
        const kr_change_step *groups
        int64_t groups_left

    int kr_topics_open(kr_topics *s)
    void kr_topics_close(kr_topics *s)
    int kr_topics_copy(kr_topics *to, const kr_topics *source)
    kr_topic *kr_topics_at(const kr_topics *s)
    int64_t kr_topics_end(const kr_topics *s)
    int32_t kr_topic_find(const kr_topics *s, uint64_t low, uint64_t high)
    int32_t kr_partition_find(const kr_topics *s, const kr_topic *topic, int32_t partition_id)
    kr_partition *kr_slots_at(const kr_topics *s)


cdef extern from "metadata/topic_notes.h" nogil:
    ctypedef struct kr_note:
        uint64_t low, high
        int64_t group
        int64_t name
        int32_t partition_id
        uint8_t is_topic, was_there

    void kr_notes_begin(kr_topics *s, int is_noting)
    int64_t kr_notes_count(const kr_topics *s)
    kr_note *kr_notes_at(const kr_topics *s)
    kr_partition *kr_lines_at(const kr_topics *s)


cdef extern from "metadata/topic_rows.h" nogil:
    ctypedef struct kr_partition_places:
        int offset, topic_id, partition_id, leader, recovery_state, leader_epoch, partition_epoch
        int lists[7]

    ctypedef struct kr_partition_rows:
        int64_t n

    kr_partition_rows kr_partition_rows_of(const ArrowArray *batch, const kr_partition_places *at)


cdef extern from "metadata/topic_replay.h" nogil:
    enum:
        KR_UNKNOWN_TOPIC
        KR_UNKNOWN_PARTITION
        KR_BAD_DIRECTORIES
        KR_BAD_RECOVERY_STATE
        KR_NO_MEMORY_LEFT

    ctypedef struct kr_candidate:
        pass

    ctypedef struct kr_topic_rows:
        int64_t n
        const int64_t *offsets
        const uint8_t *ids

    ctypedef struct kr_topic_chunk:
        kr_topic_rows topics, removals
        kr_partition_rows partitions, changes
        int64_t clearings
        const int64_t *clearing_offsets
        const int64_t *clearing_names
        int64_t first_name
        const int64_t *cleared
        kr_candidate *candidates
        int64_t candidates_count, faults_count
        int64_t *removed
        int64_t *faults

    int kr_topics_replay(kr_topics *s, kr_topic_chunk *chunk)


cdef extern from "metadata/topic_columns.h" nogil:
    ctypedef struct kr_partition_columns:
        int32_t *topics
        int32_t *partition_ids
        int32_t *leaders
        int32_t *leader_epochs
        int32_t *partition_epochs
        int8_t *recovery_states
        int32_t *ends[7]
        int32_t *items[7]

    int64_t kr_slots_of(const kr_topics *s, const int64_t *topics, int64_t n, int64_t *out)
    void kr_items_count(const kr_topics *s, const kr_partition *lines, const int64_t *at, int64_t n, int64_t *counts)
    void kr_partitions_gather(const kr_topics *s, const kr_partition *lines, const int64_t *at, int64_t n,
                              const kr_partition_columns *out)
