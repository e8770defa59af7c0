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
    """Read one part; a deleted segment is a loss of data, unless the log was rewritten.

    Parameters
    ----------
    request : Request
    part : Part

    Raises
    ------
    DataLossError
        When a segment is gone, with ``failOnDataLoss``.
    RuntimeError
        When a segment shrank, or was deleted while an earlier one remains: the log was compacted or truncated between
        planning and reading. Restarting the query helps.
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
    """Return a unique name for the content of a part, the same whenever its micro-batch is planned.

    Parameters
    ----------
    part : Part
        A part of a stream.
    """
    # a topic's name may be as long as a file name can be
    return sha256(repr(_contents(part)).encode()).hexdigest()[:32]


def _contents(part: Part) -> tuple[object, ...]:
    """Return the partition, the micro-batch's first offset in it and, if it has several parts, which one."""
    start_offset = part.options.start_offset
    if isinstance(part.work, Range):
        segment = part.work.segment
        return segment.topic, segment.partition, start_offset, segment.base_offset, part.work.start
    if segments := segments_of(part):
        return segments[0].topic, segments[0].partition, start_offset
    fault = part.faults[0]  # a part that could not be planned and has nothing to read
    return fault.topic, fault.partition, start_offset, fault.segment_base_offset, fault.error


def _is_there(request: Request, segment: Segment) -> bool:
    """Whether a segment is as long as when it was listed, or longer; report it if it is gone."""
    if disk().entry(segment.path) is not None:
        _check_size(segment)
        return True
    if _has_one_before(segment):
        raise RuntimeError(
            f"{segment.name}: deleted since the micro-batch was planned, but an earlier segment remains: the log was"
            " compacted or truncated; start the query again"
        )
    report_data_loss(f"{segment.name}: the segment was deleted before it was read", fail=request.fail_on_data_loss)
    return False


def _has_one_before(segment: Segment) -> bool:
    """Whether the segment's folder still has earlier records, which retention would have removed first."""
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
            " compacted or truncated; start the query again"
        )
