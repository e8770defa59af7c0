"""The states of partitions and of the groups that read them, for ``cause_of``; read on first use."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED, ReadOptions
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Partition
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.causes import Cause, GroupState, LogState, OpenTransaction, cause_of
from kraftlog.tables.hanging import Coordinators
from kraftlog.tables.lines import Lines
from kraftlog.tables.partition_ends import PartitionEnds
from kraftlog.tables.read import Read
from kraftlog.types import IsolationLevel


class LogStates:
    """The states of partitions, and why consumers wait in them.

    Parameters
    ----------
    lines : Lines
    files : Discovery
        All replicas; the coordinators of their log directories are asked.
    read : Pass
    """

    def __init__(self, lines: Lines, files: Discovery, read: Pass) -> None:
        self._lines = lines
        self._files = files
        self._pass = read.of_whole_log().faults_only()
        self._known: dict[Segment, LogState] = {}

    @cached_property
    def _partitions(self) -> dict[tuple[str | None, int | None], Partition]:
        return {(one.topic, one.partition): one for one in self._lines.partitions if one.topic is not None}

    @cached_property
    def _coordinators(self) -> Coordinators:
        return Coordinators(self._files, self._pass)

    def cause(self, ends: PartitionEnds | None, group: GroupState | None = None) -> tuple[Cause, LogState | None]:
        """Return why a group, or any consumer that has read up to where it stops, gets no more records.

        Parameters
        ----------
        ends : PartitionEnds or None
            None where the log of the partition is not among the files.
        group : GroupState, optional
        """
        if ends is None:
            return cause_of(None, group), None
        state = self._of(ends)
        return cause_of(*((state, None) if group is None else _met(ends, state, group))), state

    def _of(self, ends: PartitionEnds) -> LogState:
        first = ends.segments[0]
        if first not in self._known:
            self._known[first] = self._read(ends)
        return self._known[first]

    def _read(self, ends: PartitionEnds) -> LogState:
        first = ends.segments[0]
        end, stable = ends.log_end_offset, ends.last_stable_offset
        opened: OpenTransaction | None = None
        if end is not None and stable is not None and stable < end:
            every = self._coordinators.opened(ends.segments, self._pass)
            opened = min(every, key=lambda one: one.first_offset, default=None)
        partition = self._partitions.get((first.topic, first.partition))
        leader = None if partition is None else self._lines.leader_of(partition)
        return LogState(ends.log_start_offset, end, stable, leader, opened, next(iter(ends.faults), None))


def _met(ends: PartitionEnds, state: LogState, group: GroupState) -> tuple[LogState, GroupState]:
    """Return both with what the group meets next: damage, or nothing before the last stable offset."""
    state, current, end, stable = replace(state, fault=None), group.current, state.end, state.stable
    if current is None or end is None or stable is None or not ends.log_start_offset <= current < end:
        return state, group
    _, fault = _first_record(ends.segments, current, end, READ_UNCOMMITTED)
    if fault is None and state.opened is not None:
        first, _ = _first_record(ends.segments, current, stable, READ_COMMITTED)
        group = replace(group, is_at_stable=first is None)
    return replace(state, fault=fault), group


def _first_record(
    segments: list[Segment], start: int, end: int, isolation_level: IsolationLevel
) -> tuple[int | None, Fault | None]:
    """Return the offset of the first record in [start, end), or what cannot be read before it."""
    options = ReadOptions(
        start_offset=start, end_offset=end, isolation_level=isolation_level, batch_rows=1, strict=True
    )
    rows = Read.of_segments(TABLES["records"], segments, ["offset"], options).rows()
    try:
        return next((batch.column("offset")[0].as_py() for batch in rows if batch.num_rows), None), None
    except RecordError as error:
        return None, error.fault or Fault("unreadable_file", str(error))
