"""Topics and partitions as arrays: a slot for each, found by hash, with their lists of replicas in two pools.

All that grows is grown before the kernels run, since they do not allocate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NONE = -1
LOW = 0xFFFFFFFF
TOPICS_END, TOPICS_FREE, TOPICS = 0, 1, 2
PARTITIONS_END, PARTITIONS_FREE, PARTITIONS = 3, 4, 5
IDS_END, IDS_WASTE, UUIDS_END, UUIDS_WASTE, WITH_ELR = 6, 7, 8, 9, 10
_COUNTS = 11

# a row of ``state``: four numbers, then where each list starts in its pool, its length, and for how many there is room
LEADER, LEADER_RECOVERY_STATE, LEADER_EPOCH, PARTITION_EPOCH = 0, 1, 2, 3
SCALARS = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
REPLICAS, ISR, REMOVING, ADDING, ELR, LAST_KNOWN_ELR, DIRECTORIES = 0, 1, 2, 3, 4, 5, 6
ID_LISTS = ("replicas", "isr", "removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")
START, LENGTH, CAPACITY = 4, 11, 18
_WIDTH = 32
_LEAST = 64
_MOST = 2**31 - 1  # where a list starts is told in 32 bits


class Slots(NamedTuple):
    """The arrays.

    Attributes
    ----------
    counts : int64[11]
        Ends of what is in use, the first of the free slots, how many there are, pool cells that no list has.
    topic_ids : uint64[topics, 2]
    topic_names : int64[topics]
        Number of the name; -1 in a free slot.
    topic_heads : int32[topics]
        First slot of its partitions; of a free slot, the next free one.
    topic_table : int32[power of two]
        Slots by hash of the id.
    keys : int64[partitions]
        Slot of the topic in the upper half, partition in the lower one; -1 in a free slot.
    next_slots : int32[partitions]
        The topic's next partition; of a free slot, the next free one.
    table : int64[power of two, 2]
        Key and slot by hash of the key.
    state : int32[partitions, 32]
        What there is of each partition, in a row of 128 bytes: to reach for it costs more than to work with it.
    ids : int32[...]
        The pool of broker ids.
    uuids : uint64[..., 2]
        The pool of directories.
    """

    counts: npt.NDArray[np.int64]
    topic_ids: npt.NDArray[np.uint64]
    topic_names: npt.NDArray[np.int64]
    topic_heads: npt.NDArray[np.int32]
    topic_table: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int64]
    next_slots: npt.NDArray[np.int32]
    table: npt.NDArray[np.int64]
    state: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    uuids: npt.NDArray[np.uint64]

    def copy(self) -> Slots:
        """Return the same in arrays of their own."""
        arrays: list[npt.NDArray[Any]] = [array.copy() for array in self]
        return Slots(*arrays)

    def topic_slots(self) -> npt.NDArray[np.int64]:
        """Return the slots that have a topic."""
        return np.flatnonzero(self.topic_names[: self.counts[TOPICS_END]] != NONE)

    def partition_slots(self) -> npt.NDArray[np.int64]:
        """Return the slots that have a partition."""
        return np.flatnonzero(self.keys[: self.counts[PARTITIONS_END]] != NONE)


def no_slots() -> Slots:
    """Return the slots of an empty image."""
    counts = np.zeros(_COUNTS, np.int64)
    counts[[TOPICS_FREE, PARTITIONS_FREE]] = NONE
    return Slots(
        counts,
        np.zeros((_LEAST, 2), np.uint64),
        np.full(_LEAST, NONE, np.int64),
        np.full(_LEAST, NONE, np.int32),
        np.full(2 * _LEAST, NONE, np.int32),
        np.full(_LEAST, NONE, np.int64),
        np.full(_LEAST, NONE, np.int32),
        np.full((2 * _LEAST, 2), NONE, np.int64),
        np.zeros((_LEAST, _WIDTH), np.int32),
        np.zeros(_LEAST, np.int32),
        np.zeros((_LEAST, 2), np.uint64),
    )


def with_room(slots: Slots, topics: int, partitions: int, ids: int, uuids: int) -> Slots:
    """Return slots that have room for so many more of each."""
    from kraftlog.metadata import slot_lists, slot_tables

    if _is_wasteful(slots):
        slots = slot_lists.compacted(slots)
    counts = slots.counts
    if max(counts[IDS_END] + ids, counts[UUIDS_END] + uuids) > _MOST:
        raise OverflowError(f"the lists of all partitions have more than {_MOST} items")
    grown: dict[str, Any] = {}
    if counts[TOPICS_END] + topics > len(slots.topic_names):
        size = _size(int(counts[TOPICS_END]) + topics)
        for name in ("topic_ids", "topic_names", "topic_heads"):
            grown[name] = _grown(getattr(slots, name), size)
        end = int(counts[TOPICS_END])
        grown["topic_table"] = slot_tables.topic_table(slots.topic_ids, slots.topic_names, end, 2 * size)
    if counts[PARTITIONS_END] + partitions > len(slots.keys):
        size = _size(int(counts[PARTITIONS_END]) + partitions)
        for name in ("keys", "next_slots", "state"):
            grown[name] = _grown(getattr(slots, name), size)
        grown["table"] = slot_tables.partition_table(slots.keys, int(counts[PARTITIONS_END]), 2 * size)
    if counts[IDS_END] + ids > len(slots.ids):
        grown["ids"] = _grown(slots.ids, _size(int(counts[IDS_END]) + ids))
    if counts[UUIDS_END] + uuids > len(slots.uuids):
        grown["uuids"] = _grown(slots.uuids, _size(int(counts[UUIDS_END]) + uuids))
    return slots._replace(**grown)


def _is_wasteful(slots: Slots) -> bool:
    counts = slots.counts
    ids = counts[IDS_WASTE] > max(counts[IDS_END] // 2, _LEAST)
    return bool(ids or counts[UUIDS_WASTE] > max(counts[UUIDS_END] // 2, _LEAST))


def _size(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
