"""What tasks read: each table is cut into parts that can be read by themselves, in any order, more than once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.in_order import in_order
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Segment
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.ranges import Range, plan, plan_at_once, relevant
from kraftlog.read.standalone import standalone_ranges
from kraftlog.read.visible import needs_transactions, visible_ranges
from kraftlog.spark.request import Request
from kraftlog.spark.tables import RANGE_TABLES, SEGMENT_TABLES, WHOLE_TABLES, library_columns
from kraftlog.tables.log import Log

DEFAULT_RANGE_BYTES = 128 << 20  # as Spark cuts files
MANY_SEGMENTS = 512  # enough tasks for a cluster; to cut a cold segment of 1 GiB takes the driver a second
PARTITIONS_AT_ONCE = 8
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


Wanted = list[tuple[list[Segment], ReadOptions]]
"""The segments of each partition, and what is asked of it."""


def plan_parts(request: Request) -> list[Part]:
    """Return what tasks read; the files are those of this moment.

    Records and errors are cut into ranges, batches and segments are read a segment at a time, transactions and messages
    a partition at a time, and what is folded over partitions in one part.
    """
    log = request.log()
    unreadable = tuple(log.unreadable())
    if unreadable and request.options.strict:
        raise error_from_fault(unreadable[0])
    parts = [Part(WholePartition(()), request.options, unreadable)] if unreadable else []
    if request.table in WHOLE_TABLES:  # of several replicas one counts, and topics have names in any partition
        options = request.interval.of_fold(request.options, request.table)
        parts.append(Part(WholePartition(tuple(log.found.segments)), options))
    else:
        parts += _plan_partitions(request, list(_wanted(request, log)))
    if request.table in ("errors", "segments"):
        parts.append(Part(LeftAlone(), request.options))
    return [replace(part, number=number) for number, part in enumerate(parts)]


def _wanted(request: Request, log: Log) -> Iterator[tuple[list[Segment], ReadOptions]]:
    request.interval.check_partitions({(segment.topic, segment.partition) for segment in log.found.segments})
    for group in by_partition(log.found.segments):
        if request.narrowing.wants(group[0].topic, group[0].partition):
            options = request.interval.within(request.options, group)
            _check_is_there(request, group, options)
            yield group, request.narrowing.within(options)


def _plan_partitions(request: Request, wanted: Wanted) -> list[Part]:
    size = sum(segment.size for group, _ in wanted for segment in group)
    range_bytes = max(1, min(range_bytes_of(request, wanted), size // request.min_partitions))
    while True:
        parts = list(chain.from_iterable(parts_of(request, wanted, range_bytes)))
        if len(parts) >= request.min_partitions or request.table not in RANGE_TABLES or range_bytes == 1:
            return parts
        range_bytes = range_bytes // 2 if range_bytes > SMALL_RANGE_BYTES else 1


def range_bytes_of(request: Request, wanted: Wanted) -> int:
    """Return how many bytes of log a task takes; of many segments it takes one, without a look at its headers."""
    if request.range_bytes is not None:
        return request.range_bytes
    segments = sum(len(list(relevant(group, options))) for group, options in wanted)
    return DEFAULT_RANGE_BYTES if segments < MANY_SEGMENTS else NO_BOUND


def parts_of(request: Request, wanted: Wanted, range_bytes: int) -> Iterator[list[Part]]:
    """Return what tasks read of each partition, in order; several are planned at the same time.

    Parameters
    ----------
    request : Request
    wanted : list of tuple
        The segments of each partition, in order, and options with its bounds of offset.
    range_bytes : int
        Of log in a range.
    """
    return in_order(lambda one: _parts_of_one(request, *one, range_bytes), wanted, PARTITIONS_AT_ONCE)


def _parts_of_one(request: Request, group: list[Segment], options: ReadOptions, range_bytes: int) -> list[Part]:
    parts: list[Part] = []
    faults: list[Fault] = []
    for work in _works(request, group, options, range_bytes, faults):
        parts.append(Part(work, options, tuple(faults)))
        faults.clear()
    if faults:  # and nothing to read
        parts.append(Part(WholePartition(()), options, tuple(faults)))
    return parts


def _works(
    request: Request, group: list[Segment], options: ReadOptions, range_bytes: int, faults: list[Fault]
) -> Iterator[Work]:
    columns = library_columns(request.columns)
    if request.table == "records" and needs_transactions(options, columns):
        if isinstance(group[0].path, RemotePath) or is_metadata(group[0]):
            yield from visible_ranges(group, options, range_bytes, columns, faults, [])
        else:
            yield from standalone_ranges(group, options, range_bytes, faults)
    elif request.table in RANGE_TABLES:
        yield from plan_at_once(group, options, range_bytes)
    elif request.table in SEGMENT_TABLES:
        yield from plan(group, options, None)
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
