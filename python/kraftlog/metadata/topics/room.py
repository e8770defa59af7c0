"""Room in the arrays of slots: they are made larger, and pools without their unused cells, before kernels run."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlog.metadata.topics.hash_tables import resized
from kraftlog.metadata.topics.lists import move_lists
from kraftlog.metadata.topics.slots import (
    IDS_END,
    IDS_WASTE,
    LEAST,
    PARTITIONS_END,
    SPARSE,
    TOPICS_END,
    UUIDS_END,
    UUIDS_WASTE,
    Slots,
    enlarged,
)

_MOST = 2**31 - 1  # the start of a list is held in 32 bits


def with_room(slots: Slots, topics: int, partitions: int, ids: int, uuids: int) -> Slots:
    """Return slots that have room for so many more of each."""
    if _is_wasteful(slots):
        slots = _compacted(slots)
    counts = slots.counts
    if max(counts[IDS_END] + ids, counts[UUIDS_END] + uuids) > _MOST:
        raise OverflowError(f"the lists of all partitions have more than {_MOST} items")
    grown: dict[str, Any] = {}
    if counts[TOPICS_END] + topics > len(slots.topic_names):
        size = _size(int(counts[TOPICS_END]) + topics)
        for name in ("topic_ids", "topic_names", "topic_heads"):
            grown[name] = enlarged(getattr(slots, name), size)
        grown["topic_table"] = resized(slots.topic_table, SPARSE * size)
    if counts[PARTITIONS_END] + partitions > len(slots.state):
        size = _size(int(counts[PARTITIONS_END]) + partitions)
        grown["state"] = enlarged(slots.state, size)
        grown["table"] = resized(slots.table, SPARSE * size)
    if counts[IDS_END] + ids > len(slots.ids):
        grown["ids"] = enlarged(slots.ids, _size(int(counts[IDS_END]) + ids))
    if counts[UUIDS_END] + uuids > len(slots.uuids):
        grown["uuids"] = enlarged(slots.uuids, _size(int(counts[UUIDS_END]) + uuids))
    return slots._replace(**grown)


def _is_wasteful(slots: Slots) -> bool:
    counts = slots.counts
    ids = counts[IDS_WASTE] > max(counts[IDS_END] // 2, LEAST)
    return bool(ids or counts[UUIDS_WASTE] > max(counts[UUIDS_END] // 2, LEAST))


def _size(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _compacted(slots: Slots) -> Slots:
    """Return slots whose pools hold no more than the lists."""
    counts = slots.counts
    ids = np.zeros(max(int(counts[IDS_END] - counts[IDS_WASTE]), 1), np.int32)
    uuids = np.zeros((max(int(counts[UUIDS_END] - counts[UUIDS_WASTE]), 1), 2), np.uint64)
    end = int(counts[PARTITIONS_END])
    counts[[IDS_END, UUIDS_END]] = move_lists(slots.state, end, slots.ids, slots.uuids, ids, uuids)
    counts[[IDS_WASTE, UUIDS_WASTE]] = 0
    return slots._replace(ids=ids, uuids=uuids)
