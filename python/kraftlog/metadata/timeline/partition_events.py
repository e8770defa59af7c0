"""What happens to partitions within a while, counted: leaders that move, brokers that come and go in their lists."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata.changed import Changed, Rows

NAMES_SHOWN = 3
NO_LEADER = -1
RECOVERING = 1
# of a list of brokers: what one does that comes, and one that goes
LISTS = {
    "isr": ("joined the ISR", "left the ISR"),
    "replicas": ("became a replica", "is no longer a replica"),
    "eligible_leader_replicas": ("became an eligible leader replica", "is no longer an eligible leader replica"),
}


@dataclass
class Counted:
    """How many partitions something happened to, where it began and ended, and the first of them."""

    first_offset: int
    last_offset: int
    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, other: Counted) -> None:
        """Add what happened later."""
        self.last_offset, self.count = other.last_offset, self.count + other.count
        self.names = [*self.names, *other.names][:NAMES_SHOWN]

    def __str__(self) -> str:
        if self.count > NAMES_SHOWN:
            return f"{self.count:,} partitions"
        return f"partition{'s' if self.count > 1 else ''} {', '.join(self.names)}"


Counts = dict[tuple[str, int, int], Counted]
"""By what happened, and two brokers, or a broker and 0."""


def partition_counts(changed: Changed) -> Counts:
    """Count what happened to partitions that are there before and after.

    Returns
    -------
    dict
        ``leader`` with the old and the new leader; of ``LISTS`` what a broker did, with the broker; ``unclean`` for a
        leader that was not in sync.
    """
    both = changed.take((changed.was != NOWHERE) & (changed.now != NOWHERE))
    if not len(both):
        return {}
    counts: Counts = {}
    before, after = (_numbers(both, "leader", side) for side in ("before", "after"))
    moved = np.flatnonzero(before != after)
    _count(counts, "leader", both, moved, before[moved], after[moved])
    states = [_numbers(both, "leader_recovery_state", side) for side in ("before", "after")]
    unclean = np.flatnonzero((states[0] != states[1]) & (states[1] == RECOVERING))
    _count(counts, "unclean", both, unclean, after[unclean], np.zeros(len(unclean), np.int64))
    for column, (comes, goes) in LISTS.items():
        old, new = (_members(both, column, side) for side in ("before", "after"))
        for what, members in ((comes, np.setdiff1d(new, old)), (goes, np.setdiff1d(old, new))):
            rows, brokers = members >> 32, members & 0xFFFFFFFF
            _count(counts, what, both, rows, brokers, np.zeros(len(rows), np.int64))
    return counts


def of_brokers(counts: Counts, brokers: Collection[int] | None) -> Counts:
    """Return what happened to some brokers, or to all: of leaders both the old and the new one count."""
    if brokers is None:
        return counts
    return {key: one for key, one in counts.items() if key[1] in brokers or (key[0] == "leader" and key[2] in brokers)}


def by_topic(changed: Changed, rows: npt.NDArray[np.intp]) -> dict[str, Counted]:
    """Count partitions by their topics."""
    counted_topics: dict[str, Counted] = {}
    some = changed.take(rows)
    assert some.topics is not None
    for topic, group in zip(some.topics.to_pylist(), some.groups.tolist(), strict=True):
        counted = Counted(group, group, 1)
        if topic in counted_topics:
            counted_topics[topic].add(counted)
        else:
            counted_topics[topic] = counted
    return counted_topics


def _count(counts: Counts, what: str, changed: Changed, rows: Rows, first: Rows, second: Rows) -> None:
    if not len(rows):
        return
    keys = first << 32 | second & 0xFFFFFFFF
    order = np.lexsort((changed.groups[rows], keys))
    rows, keys = rows[order], keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=True):
        key = int(keys[start])
        groups = changed.groups[rows[start:end]]
        counted = Counted(
            int(groups[0]), int(groups[-1]), end - start, _names(changed, rows[start : min(end, start + NAMES_SHOWN)])
        )
        counts[what, key >> 32, int(np.int32(np.uint32(key & 0xFFFFFFFF)))] = counted


def _names(changed: Changed, rows: Rows) -> list[str]:
    some = changed.take(rows)
    assert some.topics is not None
    partitions = some.keys(["partition_id"]).column(0).to_pylist()
    return [f"{topic}-{partition}" for topic, partition in zip(some.topics.to_pylist(), partitions, strict=True)]


def _side(changed: Changed, side: str) -> tuple[pa.Table, Rows]:
    return (changed.before, changed.was) if side == "before" else (changed.after, changed.now)


def _numbers(changed: Changed, column: str, side: str) -> Rows:
    table, rows = _side(changed, side)
    return np.asarray(table.column(column).to_numpy()[rows], np.int64)


def _members(changed: Changed, column: str, side: str) -> Rows:
    """Return the brokers of lists, each with the row of its partition, as one number."""
    table, rows = _side(changed, side)
    lists = table.column(column).combine_chunks().take(pa.array(rows))
    brokers = lists.flatten().to_numpy().astype(np.int64)
    rows_of = np.asarray(pc.list_parent_indices(lists).to_numpy(), np.int64)
    return np.asarray(rows_of << 32 | brokers & 0xFFFFFFFF)
