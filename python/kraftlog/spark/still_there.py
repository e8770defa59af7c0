"""Reading a part of a stream when its files may have changed since it was planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from kraftlog.errors import Fault
from kraftlog.log.discover import Segment
from kraftlog.log.ranges import relevant
from kraftlog.spark.data_loss import report_data_loss
from kraftlog.spark.parts import Part, WholePartition
from kraftlog.spark.request import Request
from kraftlog.spark.task import read_part, segments_of


def read_what_is_there(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Read one part; a segment that went away is a loss of data.

    Parameters
    ----------
    request : Request
    part : Part

    Raises
    ------
    DataLossError
        When a segment is gone, with ``failOnDataLoss``.
    RuntimeError
        When a segment got smaller: compaction or truncation came between planning and reading. The query can be
        started again.
    """
    needed = list(relevant(list(segments_of(part)), part.options))
    gone = {segment.path for segment in needed if not segment.path.exists()}
    for segment in needed:
        if segment.path in gone:
            _report_gone(request, segment.name)
        else:
            _check_size(segment)
    if gone and isinstance(part.work, WholePartition):
        there = tuple(segment for segment in part.work.segments if segment.path not in gone)
        part = replace(part, work=WholePartition(there))
    elif gone:
        part = replace(part, work=WholePartition(()))
    faults: list[Fault] = []
    yield from read_part(request, part, faults)
    for fault in faults:
        if fault.error == "unreadable_file":
            _report_gone(request, fault.message)


def _report_gone(request: Request, what: str) -> None:
    report_data_loss(f"{what}: the segment went away before it was read", fail=request.fail_on_data_loss)


def _check_size(segment: Segment) -> None:
    if isinstance(segment.path, Path) and (size := segment.path.stat().st_size) < segment.size:
        raise RuntimeError(
            f"{segment.name}: {segment.size} bytes when the micro-batch was planned, {size} now: the segment was"
            " compacted or truncated meanwhile; start the query again"
        )
