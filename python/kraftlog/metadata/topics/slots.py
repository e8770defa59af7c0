"""Topics and partitions as arrays: a slot each, found by hash, with lists of replicas in two pools.

``room`` makes the arrays larger before the kernels run, which do not allocate.
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
LEAST = 64
SPARSE = 4  # entries of a table for each slot, so that most keys are found at the first place


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
        The partitions, a row of two cache lines each, of which most changes need the first only: loading a line costs
        more than the work on it. A free slot has no topic. ``NEXT`` is the slot of the topic's next
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
        arrays: list[npt.NDArray[Any]] = [enlarged(array, len(array)) for array in self]
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
        np.zeros((LEAST, 2), np.uint64),
        np.full(LEAST, NONE, np.int64),
        np.full(LEAST, NONE, np.int32),
        np.full(SPARSE * LEAST, NONE, np.int64),
        np.full(SPARSE * LEAST, NONE, np.int64),
        _lines(LEAST, (WIDTH,), np.dtype(np.int32)),
        np.zeros(LEAST, np.int32),
        np.zeros((LEAST, 2), np.uint64),
    )


def enlarged(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return an array of so many rows that begins with the rows of another."""
    larger = _lines(size, array.shape[1:], array.dtype)
    larger[: len(array)] = array
    return larger


def _lines(size: int, shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return zeros that begin with a cache line."""
    room = np.zeros(size * math.prod(shape) * kind.itemsize + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + len(room) - _LINE].view(kind).reshape(size, *shape)
