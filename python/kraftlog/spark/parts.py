"""What tasks read: each table is cut into parts that can be read by themselves, in any order, more than once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftlog.codec.options import ReadOptions
from kraftlog.log.discover import Discovery, Segment
from kraftlog.log.log import Log
from kraftlog.log.partitions import by_partition
from kraftlog.log.ranges import Range, plan
from kraftlog.log.table_rows import record_ranges
from kraftlog.spark.request import Request
from kraftlog.spark.tables import RANGE_TABLES, SEGMENT_TABLES, WHOLE_TABLES, library_columns


@dataclass(frozen=True)
class WholePartition:
    """The segments of a partition, or of all, for what is only known of them together."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class LeftAlone:
    """Files that belong to no range."""


Work = Range | WholePartition | LeftAlone


@dataclass(frozen=True)
class Part:
    """What one task reads.

    Attributes
    ----------
    number : int
        Its place in the plan.
    work : Range, WholePartition or LeftAlone
    options : ReadOptions
        Of the request, with the bounds of offset of its partition.
    """

    number: int
    work: Work
    options: ReadOptions


def plan_parts(request: Request) -> list[Part]:
    """Return what tasks read; the files are those of this moment.

    Records and errors are cut into ranges, batches and segments are read a segment at a time, transactions and messages
    a partition at a time, and what is folded over partitions in one part.
    """
    log = request.log()
    works = _works(request, log)
    return [Part(number, work, options) for number, (work, options) in enumerate(works)]


def _works(request: Request, log: Log) -> Iterator[tuple[Work, ReadOptions]]:
    segments = log.found.segments
    range_bytes = _range_bytes(request, log)
    if request.table in WHOLE_TABLES:  # of several replicas one counts, and topics have names in any partition
        yield WholePartition(tuple(segments)), request.options
        return
    for group in by_partition(segments):
        if not request.narrowing.wants(group[0].topic, group[0].partition):
            continue
        options = request.interval.within(request.options, group)
        _check_is_there(request, group, options)
        options = request.narrowing.within(options)
        if request.table == "records":
            columns = library_columns(request.columns)
            for part in record_ranges(Discovery(group), options, range_bytes, columns, [], []):
                yield part, options
        elif request.table in RANGE_TABLES or request.table in SEGMENT_TABLES:
            for part in plan(group, options, range_bytes if request.table in RANGE_TABLES else None):
                yield part, options
        if request.table not in ("records", *SEGMENT_TABLES):
            yield WholePartition(tuple(group)), options
    if request.table in ("errors", "segments"):
        yield LeftAlone(), request.options


def _range_bytes(request: Request, log: Log) -> int:
    return max(1, min(request.range_bytes, log.size_in_bytes // request.min_partitions))


def _check_is_there(request: Request, group: list[Segment], options: ReadOptions) -> None:
    """Raise when the offsets that are asked for begin before the log does."""
    first = group[0].base_offset
    if request.fail_on_data_loss and first is not None and 0 <= options.start_offset < first:
        raise ValueError(
            f"{group[0].topic}-{group[0].partition}: startingOffsets asks for offset {options.start_offset}, but the"
            f" log begins at {first}; with failOnDataLoss=false it is read from there"
        )
