"""A task reads its part, then updates quarantine and counters and logs a line."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pyarrow as pa

from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.notes import Notes
from kraftlog.read.ranges import Range
from kraftlog.read.segment_transactions import Fold, in_threads
from kraftlog.spark.counters import Counters
from kraftlog.spark.parts import LeftAlone, Part, plan_parts
from kraftlog.spark.quarantine import begin_quarantine, put_aside
from kraftlog.spark.read import read
from kraftlog.spark.request import Request

_log = logging.getLogger("kraftlog.spark")


def plan_tasks(request: Request, fold: Fold = in_threads) -> list[Part]:
    """Return what tasks read, and empty the quarantine."""
    parts = plan_parts(request, fold)
    if request.quarantine is not None:
        begin_quarantine(request.quarantine)
    return parts


def read_part(
    request: Request,
    part: Part,
    faults: list[Fault],
    counters: Counters | None = None,
    quarantine_name: str | None = None,
    notes: Notes | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read one part as ``kraftlog.spark.read`` does; report it once all of it is read.

    Parameters
    ----------
    request : Request
    part : Part
        A part from ``plan_tasks(request)``.
    faults : list of Fault
        Receives what could not be read; the request's quarantine receives it, too.
    counters : Counters, optional
    quarantine_name : str, optional
        The part's name in the quarantine; by default its number, which is unique only within one plan.
    notes : Notes, optional
        Receives the number of records of aborted transactions that were left out.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        With the columns of ``request.schema``.
    """
    began = time.perf_counter()
    batches = rows = 0
    for batch in read(request, part, faults, notes):
        batches += 1
        rows += batch.num_rows
        yield batch
    if request.quarantine is not None:
        put_aside(request.quarantine, quarantine_name or f"{part.number:05d}", faults)
    bytes_read = size_of(part)
    if counters is not None:
        counters.add(bytes_read=bytes_read, batches=batches, rows=rows, errors=len(faults))
    seconds = time.perf_counter() - began
    if faults:
        _log.warning("part %d: %d errors, the first: %s", part.number, len(faults), faults[0].message)
    _log.info(
        "part %d: %s, %d bytes, %d rows, %d errors, %.3f s",
        part.number,
        _name_of(part),
        bytes_read,
        rows,
        len(faults),
        seconds,
    )


def segments_of(part: Part) -> tuple[Segment, ...]:
    """Return the segments of a part."""
    if isinstance(part.work, LeftAlone):
        return ()
    return (part.work.segment,) if isinstance(part.work, Range) else part.work.segments


def size_of(part: Part) -> int:
    """Return how many bytes of log a part reads."""
    if isinstance(part.work, Range):
        return max(0, min(part.work.end, part.work.segment.size) - part.work.start)
    return sum(segment.size for segment in segments_of(part))


def _name_of(part: Part) -> str:
    segments = segments_of(part)
    if not segments:
        return "no segment"
    if isinstance(part.work, Range):
        return f"{segments[0].name} from byte {part.work.start}"
    return f"{segments[0].name} and {len(segments) - 1} more" if len(segments) > 1 else segments[0].name
