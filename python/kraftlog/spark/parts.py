"""What tasks read: each table is cut into parts that can be read by themselves, in any order, more than once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.log.discover import Discovery, Segment
from kraftlog.log.log import Log
from kraftlog.log.partitions import by_partition, is_metadata
from kraftlog.log.ranges import Range, plan
from kraftlog.log.remote_path import RemotePath
from kraftlog.log.standalone import standalone_ranges
from kraftlog.log.table_rows import record_ranges
from kraftlog.log.visible import needs_transactions
from kraftlog.spark.request import Request
from kraftlog.spark.tables import RANGE_TABLES, SEGMENT_TABLES, WHOLE_TABLES, library_columns

SMALL_RANGE_BYTES = 4096  # less than that is tried once, a batch at a time


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
    work : Range, WholePartition or LeftAlone
    options : ReadOptions
        Of the request, with the bounds of offset of its partition.
    faults : tuple of Fault
        What could not be read when it was planned.
    number : int
        Its place in the plan.
    """

    work: Work
    options: ReadOptions
    faults: tuple[Fault, ...] = ()
    number: int = 0


def plan_parts(request: Request) -> list[Part]:
    """Return what tasks read; the files are those of this moment.

    Records and errors are cut into ranges, batches and segments are read a segment at a time, transactions and messages
    a partition at a time, and what is folded over partitions in one part.
    """
    log = request.log()
    range_bytes = max(1, min(request.range_bytes, log.size_in_bytes // request.min_partitions))
    parts = list(_parts(request, log, range_bytes))
    while len(parts) < request.min_partitions and request.table in RANGE_TABLES and range_bytes > 1:
        range_bytes = range_bytes // 2 if range_bytes > SMALL_RANGE_BYTES else 1
        parts = list(_parts(request, log, range_bytes))
    return [replace(part, number=number) for number, part in enumerate(parts)]


def _parts(request: Request, log: Log, range_bytes: int) -> Iterator[Part]:
    unreadable = tuple(log.unreadable())
    if unreadable and request.options.strict:
        raise error_from_fault(unreadable[0])
    if unreadable:
        yield Part(WholePartition(()), request.options, unreadable)
    if request.table in WHOLE_TABLES:  # of several replicas one counts, and topics have names in any partition
        yield Part(WholePartition(tuple(log.found.segments)), request.interval.of_fold(request.options, request.table))
        return
    request.interval.check_partitions({(segment.topic, segment.partition) for segment in log.found.segments})
    for group in by_partition(log.found.segments):
        if not request.narrowing.wants(group[0].topic, group[0].partition):
            continue
        options = request.interval.within(request.options, group)
        _check_is_there(request, group, options)
        yield from partition_parts(request, group, request.narrowing.within(options), range_bytes)
    if request.table in ("errors", "segments"):
        yield Part(LeftAlone(), request.options)


def partition_parts(
    request: Request, group: list[Segment], options: ReadOptions, range_bytes: int | None = None
) -> Iterator[Part]:
    """Return what tasks read of one partition.

    Parameters
    ----------
    request : Request
    group : list of Segment
        Of the partition, in order.
    options : ReadOptions
        With its bounds of offset.
    range_bytes : int, optional
        Bytes of log in a range; by default those of the request.
    """
    range_bytes = range_bytes or request.range_bytes
    faults: list[Fault] = []
    for work in _works(request, group, options, range_bytes, faults):
        yield Part(work, options, tuple(faults))
        faults.clear()
    if faults:  # and nothing to read
        yield Part(WholePartition(()), options, tuple(faults))


def _works(
    request: Request, group: list[Segment], options: ReadOptions, range_bytes: int, faults: list[Fault]
) -> Iterator[Work]:
    columns = library_columns(request.columns)
    is_local = not isinstance(group[0].path, RemotePath)
    if request.table == "records" and needs_transactions(options, columns) and is_local and not is_metadata(group[0]):
        yield from standalone_ranges(group, options, range_bytes, faults)
    elif request.table == "records":
        yield from record_ranges(Discovery(group), options, range_bytes, columns, faults, [])
    elif request.table in RANGE_TABLES or request.table in SEGMENT_TABLES:
        yield from plan(group, options, range_bytes if request.table in RANGE_TABLES else None)
    if request.table not in ("records", *SEGMENT_TABLES):
        yield WholePartition(tuple(group))


def _check_is_there(request: Request, group: list[Segment], options: ReadOptions) -> None:
    """Raise when the offsets that are asked for begin before the log does."""
    first = group[0].base_offset
    if request.fail_on_data_loss and first is not None and 0 <= options.start_offset < first:
        raise ValueError(
            f"{group[0].topic}-{group[0].partition}: startingOffsets asks for offset {options.start_offset}, but the"
            f" log begins at {first}; with failOnDataLoss=false it is read from there"
        )
