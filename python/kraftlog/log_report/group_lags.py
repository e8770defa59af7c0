"""Lag of groups: the table ``lag`` summed by group, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

WORST = 10  # partitions kept of each group
OUT_OF_RANGE = 20  # rows kept


@dataclass
class GroupFacts:
    """A group and its committed offsets.

    Attributes
    ----------
    state, group_type : str or None
        As in the table ``groups``; None for a group that is not in it.
    members : int
    partitions : int
        Partitions with a committed offset, or assigned to a member.
    lag, read_committed_lag : int
        Sums over the partitions with a known lag.
    known : int
        Partitions whose lag is known.
    unknown : int
        Partitions whose log end is unknown.
    uncommitted : int
        Partitions of members without a commit.
    worst : list of dict
        Rows of the table ``lag`` with the largest lag.
    """

    name: str
    state: str | None = None
    group_type: str | None = None
    members: int = 0
    partitions: int = 0
    lag: int = 0
    read_committed_lag: int = 0
    known: int = 0
    unknown: int = 0
    uncommitted: int = 0
    worst: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class GroupLags:
    """All groups, by name.

    Attributes
    ----------
    lost, ahead : list of dict
        First rows of the table ``lag`` whose offset is before the start of the log, or after its end.
    lost_count, ahead_count : int
    """

    groups: dict[str, GroupFacts] = field(default_factory=dict)
    lost: list[dict[str, Any]] = field(default_factory=list)
    ahead: list[dict[str, Any]] = field(default_factory=list)
    lost_count: int = 0
    ahead_count: int = 0

    def add_groups(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Add rows of the table ``groups``."""
        for batch in rows:
            for row in batch.select(["group", "group_type", "state", "members"]).to_pylist():
                one = self._group(row["group"])
                one.group_type, one.state, one.members = row["group_type"], row["state"], len(row["members"] or ())

    def add_lags(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Add rows of the table ``lag``, with ``log_start_offset``."""
        for batch in rows:
            for row in batch.to_pylist():
                self._add(row)
        for one in self.groups.values():
            one.worst.sort(key=_lag_of, reverse=True)

    def _add(self, row: dict[str, Any]) -> None:
        one = self._group(row["group"])
        one.partitions += 1
        end, start, current = row["log_end_offset"], row["log_start_offset"], row["current_offset"]
        one.unknown += end is None
        if current is None:
            one.uncommitted += 1
            return
        one.known += row["lag"] is not None
        one.lag += row["lag"] or 0
        one.read_committed_lag += row["read_committed_lag"] or 0
        one.worst = heapq.nlargest(WORST, [*one.worst, row], key=_lag_of)
        if end is not None and current > end:
            self.ahead_count += 1
            self.ahead += [row] if len(self.ahead) < OUT_OF_RANGE else []
        elif start is not None and current < start:
            self.lost_count += 1
            self.lost += [row] if len(self.lost) < OUT_OF_RANGE else []

    def _group(self, name: str) -> GroupFacts:
        return self.groups.setdefault(name, GroupFacts(name))


def _lag_of(row: dict[str, Any]) -> int:
    return -1 if row["lag"] is None else int(row["lag"])
