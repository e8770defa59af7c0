"""Topics and partitions as arrays: a slot for each, found by hash, with their lists of replicas in two pools.

All that grows is grown before the kernels run, since they do not allocate.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NONE = -1
TOPICS_END, TOPICS_FREE, TOPICS = 0, 1, 2
PARTITIONS_END, PARTITIONS_FREE, PARTITIONS = 3, 4, 5
IDS_END, IDS_WASTE, UUIDS_END, UUIDS_WASTE, WITH_ELR = 6, 7, 8, 9, 10
_COUNTS = 11

# a row of ``state``: numbers, a short ISR, then of each list where it starts in its pool, its length, and for how many
# there is room; while there is none for the ISR, the row has it
TOPIC_SLOT, PARTITION_ID, LEADER, LEADER_RECOVERY_STATE, LEADER_EPOCH, PARTITION_EPOCH = 0, 1, 2, 3, 4, 5
NEXT, ISR_IDS = 6, 7
SCALARS = {
    "partition_id": PARTITION_ID,
    "leader": LEADER,
    "leader_recovery_state": LEADER_RECOVERY_STATE,
    "leader_epoch": LEADER_EPOCH,
    "partition_epoch": PARTITION_EPOCH,
}
SCALARS_END = 6
ISR, REPLICAS, REMOVING, ADDING, ELR, LAST_KNOWN_ELR, DIRECTORIES = 0, 1, 2, 3, 4, 5, 6
ID_LISTS = ("isr", "replicas", "removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")
START, LENGTH, CAPACITY = 11, 12, 13  # of the first list
PER_LIST = 3
SHORT = 4  # as long an ISR fits in a row
WIDTH = 32
_LINE = 64  # bytes that come from memory at once
_LEAST = 64
_SPARSE = 4  # entries of a table for each slot, so that most keys are where they are first looked for
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
    topic_table : int64[power of two]
        Slots by hash of the id.
    table : int64[power of two]
        Slots by hash of topic and partition.
    state : int32[partitions, 32]
        What there is of each partition, in two cache lines, of which most changes need the first only: to reach for it
        costs more than to work with it. In a free slot there is no topic. ``NEXT`` is the slot of the topic's next
        partition, or the next free one.
    ids : int32[...]
        The pool of broker ids.
    uuids : uint64[..., 2]
        The pool of directories.
    """

    counts: npt.NDArray[np.int64]
    topic_ids: npt.NDArray[np.uint64]
    topic_names: npt.NDArray[np.int64]
    topic_heads: npt.NDArray[np.int32]
    topic_table: npt.NDArray[np.int64]
    table: npt.NDArray[np.int64]
    state: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]
    uuids: npt.NDArray[np.uint64]

    def copy(self) -> Slots:
        """Return the same in arrays of their own."""
        arrays: list[npt.NDArray[Any]] = [_grown(array, len(array)) for array in self]
        return Slots(*arrays)

    def topic_slots(self) -> npt.NDArray[np.int64]:
        """Return the slots that have a topic."""
        return np.flatnonzero(self.topic_names[: self.counts[TOPICS_END]] != NONE)

    def partition_slots(self) -> npt.NDArray[np.int64]:
        """Return the slots that have a partition."""
        return np.flatnonzero(self.state[: self.counts[PARTITIONS_END], TOPIC_SLOT] != NONE)


def no_slots() -> Slots:
    """Return the slots of an empty image."""
    counts = np.zeros(_COUNTS, np.int64)
    counts[[TOPICS_FREE, PARTITIONS_FREE]] = NONE
    return Slots(
        counts,
        np.zeros((_LEAST, 2), np.uint64),
        np.full(_LEAST, NONE, np.int64),
        np.full(_LEAST, NONE, np.int32),
        np.full(_SPARSE * _LEAST, NONE, np.int64),
        np.full(_SPARSE * _LEAST, NONE, np.int64),
        _lines(_LEAST, (WIDTH,), np.dtype(np.int32)),
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
        grown["topic_table"] = slot_tables.resized(slots.topic_table, _SPARSE * size)
    if counts[PARTITIONS_END] + partitions > len(slots.state):
        size = _size(int(counts[PARTITIONS_END]) + partitions)
        grown["state"] = _grown(slots.state, size)
        grown["table"] = slot_tables.resized(slots.table, _SPARSE * size)
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
    grown = _lines(size, array.shape[1:], array.dtype)
    grown[: len(array)] = array
    return grown


def _lines(size: int, shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return zeros that begin with a cache line."""
    room = np.zeros(size * math.prod(shape) * kind.itemsize + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + len(room) - _LINE].view(kind).reshape(size, *shape)
