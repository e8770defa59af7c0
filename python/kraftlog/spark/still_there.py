"""Reading a part of a stream when its files may have changed since it was planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.names import parse_segment_file
from kraftlog.layout.segment import Segment
from kraftlog.read.ranges import Range, relevant
from kraftlog.spark.data_loss import report_data_loss
from kraftlog.spark.parts import Part, WholePartition
from kraftlog.spark.request import Request
from kraftlog.spark.task import read_part, segments_of


def read_what_is_there(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Read one part; a segment that went away is a loss of data, unless the log was rewritten.

    Parameters
    ----------
    request : Request
    part : Part

    Raises
    ------
    DataLossError
        When a segment is gone, with ``failOnDataLoss``.
    RuntimeError
        When a segment got smaller, or is gone while an earlier one is there: compaction or truncation came between
        planning and reading. The query can be started again.
    """
    name = quarantine_name(part)
    needed = list(relevant(list(segments_of(part)), part.options))
    gone = {segment.path for segment in needed if not _is_there(request, segment)}
    if gone and isinstance(part.work, WholePartition):
        there = tuple(segment for segment in part.work.segments if segment.path not in gone)
        part = replace(part, work=WholePartition(there))
    elif gone:
        part = replace(part, work=WholePartition(()))
    faults: list[Fault] = []
    yield from read_part(request, part, faults, quarantine_name=name)
    unread = {fault.segment_base_offset for fault in faults if fault.error == "unreadable_file"}
    for segment in needed:
        if segment.base_offset in unread and segment.path not in gone:
            _is_there(request, segment)


def quarantine_name(part: Part) -> str:
    """Return a name for what a part holds, the same whenever its micro-batch is planned, and that of no other part.

    Parameters
    ----------
    part : Part
        Of a stream.
    """
    # topics may have names as long as those of files can be
    return sha256(repr(_contents(part)).encode()).hexdigest()[:32]


def _contents(part: Part) -> tuple[object, ...]:
    """Return partition, offset at which the micro-batch begins in it and, where it is less than that, which part."""
    start_offset = part.options.start_offset
    if isinstance(part.work, Range):
        segment = part.work.segment
        return segment.topic, segment.partition, start_offset, segment.base_offset, part.work.start
    if segments := segments_of(part):
        return segments[0].topic, segments[0].partition, start_offset
    fault = part.faults[0]  # of what could not be planned, where nothing is left to read
    return fault.topic, fault.partition, start_offset, fault.segment_base_offset, fault.error


def _is_there(request: Request, segment: Segment) -> bool:
    """Whether a segment is as it was when it was listed, or longer; report it where it is gone."""
    if disk().entry(segment.path) is not None:
        _check_size(segment)
        return True
    if _has_one_before(segment):
        raise RuntimeError(
            f"{segment.name}: it is gone since the micro-batch was planned, and an earlier segment is not: the log was"
            " compacted or truncated meanwhile; start the query again"
        )
    report_data_loss(f"{segment.name}: the segment went away before it was read", fail=request.fail_on_data_loss)
    return False


def _has_one_before(segment: Segment) -> bool:
    """Whether records before those of a segment are in its folder, where retention would have removed them first."""
    base_offset = segment.base_offset or 0
    for path in disk().matches(segment.path.parent, "*.log*"):
        found = parse_segment_file(path.name)
        if found is None or found.kind != "log":
            continue
        is_earlier = not found.state and found.base_offset < base_offset
        takes_its_place = found.state == ".swap" and found.base_offset <= base_offset
        if is_earlier or takes_its_place:
            return True
    return False


def _check_size(segment: Segment) -> None:
    if isinstance(segment.path, Path) and (size := segment.path.stat().st_size) < segment.size:
        raise RuntimeError(
            f"{segment.name}: {segment.size} bytes when the micro-batch was planned, {size} now: the segment was"
            " compacted or truncated meanwhile; start the query again"
        )
