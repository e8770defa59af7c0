"""Topics and partitions of a metadata image, in C.

Records are applied without the interpreter lock; meanwhile other threads are refused. All other calls keep the lock, or
lock the image where there is none."""

import numpy as np

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from kraftlog._native.c_arrow cimport ArrowArray
from kraftlog._native.c_memory cimport kr_busy, kr_busy_leave, kr_pool_use
from kraftlog._native.c_topics cimport (
    KR_BAD_DIRECTORIES,
    KR_BAD_RECOVERY_STATE,
    KR_LISTS,
    KR_NO_MEMORY_LEFT,
    KR_NOWHERE,
    KR_UNKNOWN_PARTITION,
    KR_UNKNOWN_TOPIC,
    kr_candidate,
    kr_change_step,
    kr_items_count,
    kr_lines_at,
    kr_note,
    kr_notes_at,
    kr_notes_begin,
    kr_notes_count,
    kr_partition,
    kr_partition_columns,
    kr_partition_find,
    kr_partition_places,
    kr_partition_rows,
    kr_partition_rows_of,
    kr_partitions_gather,
    kr_slots_at,
    kr_slots_of,
    kr_topic_chunk,
    kr_topic_find,
    kr_topic_rows,
    kr_topics,
    kr_topics_at,
    kr_topics_close,
    kr_topics_copy,
    kr_topics_end,
    kr_topics_open,
    kr_topics_replay,
)
from kraftlog._native.memory cimport enter, shared_pool

kr_pool_use(shared_pool())

UNKNOWN_TOPIC, UNKNOWN_PARTITION = KR_UNKNOWN_TOPIC, KR_UNKNOWN_PARTITION
BAD_DIRECTORIES, BAD_RECOVERY_STATE = KR_BAD_DIRECTORIES, KR_BAD_RECOVERY_STATE
LISTS = (
    "isr", "replicas", "removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr",
    "directories",
)
SCALARS = (
    "offset", "topic_id", "partition_id", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch",
)
NONE = KR_NOWHERE
_MOST = 2**31 - 1  # items of a column of lists


cdef const int64_t *numbers(const int64_t[::1] values) noexcept:
    return &values[0] if values.shape[0] else NULL


cdef kr_topic_rows topic_rows(const int64_t[::1] offsets, const uint64_t[:, ::1] ids) except *:
    if ids.shape[0] != offsets.shape[0] or ids.shape[1] != 2:
        raise ValueError(f"{offsets.shape[0]} offsets and {ids.shape[0]} ids of {ids.shape[1]} numbers")
    cdef kr_topic_rows rows
    rows.n = offsets.shape[0]
    rows.offsets = numbers(offsets)
    rows.ids = <const uint8_t *>&ids[0, 0] if rows.n else NULL
    return rows


cdef class PartitionRows:
    """The columns of PartitionRecords or PartitionChangeRecords, which are lent.

    ``places`` says where those of ``SCALARS`` and then those of ``LISTS`` are in the batch, -1 for one that is not.
    """

    cdef kr_partition_rows rows
    cdef object capsule

    def __init__(self, batch, places):
        _, self.capsule = batch.__arrow_c_array__()
        cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(self.capsule, "arrow_array")
        cdef kr_partition_places at
        at.offset, at.topic_id, at.partition_id, at.leader, at.recovery_state = places[:5]
        at.leader_epoch, at.partition_epoch = places[5:7]
        if len(places) != 7 + KR_LISTS or max(places) >= batch.num_columns or min(places[:5] + places[7:]) < 0:
            raise ValueError(f"columns of partitions at {places} of {batch.num_columns}")
        cdef int name
        for name in range(KR_LISTS):
            at.lists[name] = places[7 + name]
        self.rows = kr_partition_rows_of(array, &at)

    def __len__(self):
        return self.rows.n


cdef class TopicSlots:
    """The topics and partitions of an image."""

    cdef kr_topics state
    cdef kr_busy busy  # while records are applied

    def __cinit__(self):
        memset(&self.busy, 0, sizeof(self.busy))
        if not kr_topics_open(&self.state):
            raise MemoryError("no memory for an image")

    def __dealloc__(self):
        kr_topics_close(&self.state)

    cdef int _check_free(self) except -1:
        """Refuses what is asked while records are applied."""
        enter(&self.busy, self)
        kr_busy_leave(&self.busy)
        return 0

    @cython.critical_section
    def copy(self):
        """Return the same in memory of its own."""
        self._check_free()
        cdef TopicSlots copied = TopicSlots()
        kr_topics_close(&copied.state)
        if not kr_topics_copy(&copied.state, &self.state):
            raise MemoryError("no memory for a copy of an image")
        return copied

    @property
    def counts(self):
        """How many topics and partitions there are."""
        return self.state.topics_count, self.state.partitions_count

    @cython.critical_section
    def topics(self):
        """Return number, number of the name, and id of each topic."""
        self._check_free()
        cdef int64_t i, end = kr_topics_end(&self.state)
        at = np.empty((2, self.state.topics_count), np.int64)
        ids = np.empty((self.state.topics_count, 2), np.uint64)
        cdef int64_t[:, ::1] numbered = at
        cdef uint64_t[:, ::1] written = ids
        cdef int64_t count = 0
        for i in range(end):
            topic = &kr_topics_at(&self.state)[i]
            if topic.name != KR_NOWHERE:
                numbered[0, count], numbered[1, count] = i, topic.name
                written[count, 0], written[count, 1] = topic.low, topic.high
                count += 1
        return at[0], at[1], ids

    @cython.critical_section
    def renumber_names(self, const int64_t[::1] topics):
        """Number the names of topics anew, in this order."""
        self._check_free()
        cdef int64_t i
        for i in range(topics.shape[0]):
            if not 0 <= topics[i] < kr_topics_end(&self.state):
                raise IndexError(f"topic {topics[i]} of {kr_topics_end(&self.state)}")
            kr_topics_at(&self.state)[topics[i]].name = i

    @cython.critical_section
    def replay(self, topics, int64_t first_name, const int64_t[::1] cleared not None, removals,
               PartitionRows partitions not None, PartitionRows changes not None, clearings,
               int64_t[:, ::1] candidates not None, int64_t candidates_count, const int64_t[:, ::1] groups not None):
        """Apply records in the order of their offsets.

        Topics, their removals and the clearings of eligible leader replicas are two arrays each: offsets, and ids or
        numbers of names. ``candidates`` has room for the new topics as well. ``groups`` says, for what is noted, at
        which offset each group of records begins, and its number.

        Returns the kind, row and fault of what was refused; and the name of the topic that each removal removed.
        """
        cdef kr_topic_chunk chunk
        chunk.topics, chunk.removals = topic_rows(topics[0], topics[1]), topic_rows(removals[0], removals[1])
        chunk.partitions, chunk.changes = partitions.rows, changes.rows
        cdef const int64_t[::1] offsets = clearings[0], names = clearings[1]
        chunk.clearings, chunk.clearing_offsets, chunk.clearing_names = len(offsets), numbers(offsets), numbers(names)
        chunk.first_name, chunk.cleared = first_name, numbers(cleared)
        if (len(names) != len(offsets) or len(cleared) != chunk.topics.n or candidates.shape[1] != 3
                or not 0 <= candidates_count <= len(candidates) - chunk.topics.n):
            raise ValueError("the columns of topics are not of one length")
        chunk.candidates = <kr_candidate *>&candidates[0, 0] if len(candidates) else NULL
        chunk.candidates_count, chunk.faults_count = candidates_count, 0
        rows = chunk.topics.n + chunk.removals.n + chunk.partitions.n + chunk.changes.n + chunk.clearings
        faults, removed = np.empty((rows + 1, 3), np.int64), np.empty(chunk.removals.n + 1, np.int64)
        cdef int64_t[:, ::1] noted = faults
        cdef int64_t[::1] gone = removed
        chunk.faults, chunk.removed = &noted[0, 0], &gone[0]
        if groups.shape[1] != 2:
            raise ValueError(f"groups of {groups.shape[1]} numbers")
        cdef int failed
        enter(&self.busy, self)
        self.state.groups_left = groups.shape[0]
        self.state.groups = <const kr_change_step *>&groups[0, 0] if groups.shape[0] else NULL
        with nogil:
            failed = kr_topics_replay(&self.state, &chunk)
        self.state.groups, self.state.groups_left = NULL, 0
        kr_busy_leave(&self.busy)
        if failed == KR_NO_MEMORY_LEFT:
            raise MemoryError("no memory for the partitions of an image")
        if failed:
            raise ValueError("a list of a partition's record is not within the items of its column")
        return faults[:chunk.faults_count], removed[:-1]

    @cython.critical_section
    def partitions(self, const int64_t[::1] topics not None):
        """Return the partitions of topics, topic after topic and by id, as columns.

        Returns
        -------
        dict
            The number of each one's topic as ``topic``; numbers by name, and of each list where it ends and its items.
        """
        self._check_free()
        cdef int64_t i
        for i in range(topics.shape[0]):
            if not 0 <= topics[i] < kr_topics_end(&self.state):
                raise IndexError(f"topic {topics[i]} of {kr_topics_end(&self.state)}")
        slots = np.empty(self.state.partitions_count + 1, np.int64)
        cdef int64_t[::1] at = slots
        cdef int64_t count = kr_slots_of(&self.state, numbers(topics), topics.shape[0], &at[0])
        return self._columns(kr_slots_at(&self.state), at, count)

    @cython.critical_section
    def begin_notes(self, bint is_noting=True):
        """Note what records change from here on, or end that; what was noted is forgotten."""
        self._check_free()
        kr_notes_begin(&self.state, is_noting)

    @cython.critical_section
    def notes(self):
        """Return what was noted, in the order of the records; of several notes of one thing in a group the first counts.

        Returns
        -------
        dict of str to numpy.ndarray
            ``ids`` of the topics as two numbers each, ``group``, ``partition``, ``is_topic``, ``was_there``, and
            ``name``, the number of the topic's name, -1 for none.
        """
        self._check_free()
        cdef int64_t i, count = kr_notes_count(&self.state)
        cdef const kr_note *note
        found = {
            "ids": np.empty((count, 2), np.uint64),
            "group": np.empty(count, np.int64),
            "partition": np.empty(count, np.int32),
            "is_topic": np.empty(count, np.uint8),
            "was_there": np.empty(count, np.uint8),
            "name": np.empty(count, np.int64),
        }
        cdef uint64_t[:, ::1] ids = found["ids"]
        cdef int64_t[::1] groups = found["group"], names = found["name"]
        cdef int32_t[::1] partitions = found["partition"]
        cdef uint8_t[::1] is_topic = found["is_topic"], was_there = found["was_there"]
        for i in range(count):
            note = &kr_notes_at(&self.state)[i]
            ids[i, 0], ids[i, 1] = note.low, note.high
            groups[i], names[i], partitions[i] = note.group, note.name, note.partition_id
            is_topic[i], was_there[i] = note.is_topic, note.was_there
        return found

    @cython.critical_section
    def noted_partitions(self, const int64_t[::1] notes not None):
        """Return the partitions of some notes as they were, as ``partitions`` does."""
        self._check_free()
        cdef int64_t i
        for i in range(notes.shape[0]):
            if not 0 <= notes[i] < kr_notes_count(&self.state):
                raise IndexError(f"note {notes[i]} of {kr_notes_count(&self.state)}")
        at = np.append(notes, 0).astype(np.int64)
        return self._columns(kr_lines_at(&self.state), at, notes.shape[0])

    @cython.critical_section
    def names_of(self, const uint64_t[:, ::1] ids not None):
        """Return the number of the name of each topic; -1 where there is no such topic."""
        self._check_free()
        cdef int64_t i
        cdef int32_t topic
        found = np.empty(ids.shape[0], np.int64)
        cdef int64_t[::1] names = found
        for i in range(ids.shape[0]):
            topic = kr_topic_find(&self.state, ids[i, 0], ids[i, 1])
            names[i] = KR_NOWHERE if topic == KR_NOWHERE else kr_topics_at(&self.state)[topic].name
        return found

    @cython.critical_section
    def partitions_at(self, const uint64_t[:, ::1] ids not None, const int32_t[::1] partitions not None):
        """Return which of some partitions are there, and the columns of these as ``partitions`` does.

        Each is the topic's id as two numbers, and the partition.
        """
        self._check_free()
        if ids.shape[0] != partitions.shape[0] or ids.shape[1] != 2:
            raise ValueError(f"{partitions.shape[0]} partitions and {ids.shape[0]} ids of {ids.shape[1]} numbers")
        cdef int64_t[::1] at = np.zeros(len(partitions) + 1, np.int64)
        are_there = np.zeros(len(partitions), np.uint8)
        cdef uint8_t[::1] there = are_there
        cdef int64_t i, count = 0
        cdef int32_t topic, slot
        for i in range(ids.shape[0]):
            topic = kr_topic_find(&self.state, ids[i, 0], ids[i, 1])
            if topic == KR_NOWHERE:
                continue
            slot = kr_partition_find(&self.state, &kr_topics_at(&self.state)[topic], partitions[i])
            if slot != KR_NOWHERE:
                at[count] = slot
                count += 1
                there[i] = 1
        return are_there.view(bool), self._columns(kr_slots_at(&self.state), at, count)

    cdef _columns(self, const kr_partition *lines, int64_t[::1] at, int64_t count):
        """Return the columns of lines; ``at`` has one index more."""
        cdef int64_t i
        cdef int64_t totals[7]
        kr_items_count(&self.state, lines, &at[0], count, totals)
        cdef kr_partition_columns out
        found = {name: np.empty(count + 1, np.int32) for name in ("topic", *SCALARS[2:])}
        found["leader_recovery_state"] = np.empty(count + 1, np.int8)
        cdef int32_t[::1] column, ends, items
        cdef int8_t[::1] states = found["leader_recovery_state"]
        out.recovery_states = &states[0]
        column = found["topic"]
        out.topics = &column[0]
        column = found["partition_id"]
        out.partition_ids = &column[0]
        column = found["leader"]
        out.leaders = &column[0]
        column = found["leader_epoch"]
        out.leader_epochs = &column[0]
        column = found["partition_epoch"]
        out.partition_epochs = &column[0]
        lists = {}
        for i, name in enumerate(LISTS):
            if totals[i] > _MOST:
                raise OverflowError(f"{name} of all partitions has {totals[i]} items, more than {_MOST}")
            width = 4 if name == "directories" else 1
            lists[name] = np.empty(count + 1, np.int32), np.empty(width * (totals[i] + 1), np.int32)
            ends, items = lists[name]
            out.ends[i], out.items[i] = &ends[0], &items[0]
        kr_partitions_gather(&self.state, lines, &at[0], count, &out)
        columns = {name: values[:count] for name, values in found.items()}
        for i, (name, (ended, values)) in enumerate(lists.items()):
            width = 4 if name == "directories" else 1
            columns[name] = ended, values[: width * totals[i]]
        return columns
