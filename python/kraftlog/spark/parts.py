"""What tasks read: each table is cut into independent parts, which tasks may read in any order and more than once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import NamedTuple

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.committed_ranges import PartitionRanges, needs_transactions
from kraftlog.read.end_offset import end_offset
from kraftlog.read.log_pass import Pass
from kraftlog.read.metadata_scan import metadata_ranges
from kraftlog.read.partitions import by_partition, is_metadata, log_start_offset
from kraftlog.read.ranges import Range, plan, plan_at_once, relevant
from kraftlog.read.segment_transactions import Fold, in_threads
from kraftlog.read.transaction_map import TransactionMap
from kraftlog.spark.request import Request
from kraftlog.spark.tables import library_columns
from kraftlog.tables.committed import CommittedEnds
from kraftlog.tables.log import Log
from kraftlog.tables.replica_table import PartitionReplicas, partition_replicas
from kraftlog.tables.table import Replicas, TaskCut
from kraftlog.topics import TopicPartition

LOGGER = logging.getLogger("kraftlog.spark")
DEFAULT_RANGE_BYTES = 128 << 20  # as Spark cuts files
MANY_SEGMENTS = 512  # to walk the headers of a cold segment of 1 GiB takes the driver a second, its index some ms
PARTITIONS_AT_ONCE = 8
_RANGES = (TaskCut.RANGES, TaskCut.CHECKS)
SMALL_RANGE_BYTES = 4096  # reading fewer is not worth a retry with larger steps


@dataclass(frozen=True)
class WholePartition:
    """All segments of a partition, or of all partitions, for tables whose rows need all of them.

    Attributes
    ----------
    segments, metadata_log : tuple of Segment
        As in a ``Discovery``; the metadata log is set if the table chooses among replicas.
    ends_at_cut : mapping of TopicPartition to int
        As in a ``Discovery``.
    """

    segments: tuple[Segment, ...]
    metadata_log: tuple[Segment, ...] = ()
    ends_at_cut: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftAlone:
    """Files that belong to no range."""


Work = Range | WholePartition | PartitionReplicas | LeftAlone


@dataclass(frozen=True)
class Part:
    """What one task reads.

    Attributes
    ----------
    work : Range, WholePartition, PartitionReplicas or LeftAlone
    options : ReadOptions
        Options of the request, with the offset bounds of its partition.
    faults : tuple of Fault
        What planning could not read.
    number : int
        Its place in the plan.
    """

    work: Work
    options: ReadOptions
    faults: tuple[Fault, ...] = ()
    number: int = 0


Wanted = list[tuple[list[Segment], ReadOptions]]
"""The segments of each partition, and its options."""

Maps = list[TransactionMap | None]
"""The transactions of each partition; None where they are not needed, and for a metadata log."""


def plan_parts(request: Request, fold: Fold = in_threads) -> list[Part]:
    """Return what tasks read; files are listed at the time of the call.

    What is no fault, and that a user should know, such as what is read from which replica, is logged as a warning.
    Records and errors are cut into ranges, batches and segments are read a segment at a time, transactions and messages
    a partition at a time, replicas those of a partition at a time, and what is folded over partitions in one part.

    Parameters
    ----------
    request : Request
    fold : callable
        Makes the passes over headers that transactions need.
    """
    log = request.log()
    unreadable = tuple(log.unreadable())
    if unreadable and request.options.strict:
        raise error_from_fault(unreadable[0])
    parts = [Part(WholePartition(()), request.options, unreadable)] if unreadable else []
    table, faults, notes = request.definition, list[Fault](), list[str]()
    if table.cut is TaskCut.WHOLE:  # topics have names in any partition
        options = request.interval.of_fold(request.options, table)
        files = _files(request, log, notes)
        metadata_log = files.metadata_log if table.replicas in (Replicas.CHOSEN_BY_TABLE, Replicas.COMPARED) else ()
        parts.append(Part(WholePartition(tuple(files.segments), tuple(metadata_log), files.ends_at_cut), options))
    elif table.cut is TaskCut.REPLICAS:
        options = request.interval.of_fold(request.options, table)
        for of_partition in partition_replicas(log.found, request.columns, Pass(faults=faults)):
            parts.append(Part(of_partition, options))
        if faults:
            parts.append(Part(WholePartition(()), options, tuple(faults)))
    else:
        parts += _plan_partitions(request, list(_wanted(request, log, faults, notes)), fold)
        if faults and request.options.strict:
            raise error_from_fault(faults[0])
        parts += [Part(WholePartition(()), request.options, tuple(faults))] if faults else []
    if table.shows_unread:
        parts.append(Part(LeftAlone(), request.options))
    for note in notes:
        LOGGER.warning("%s", note)
    return [replace(part, number=number) for number, part in enumerate(parts)]


def _wanted(
    request: Request, log: Log, faults: list[Fault], notes: list[str]
) -> Iterator[tuple[list[Segment], ReadOptions]]:
    ends = CommittedEnds(log.lines, faults, notes) if request.options.committed_only else None
    request.interval.check_start(request.definition)
    request.interval.check_partitions({(segment.topic, segment.partition) for segment in log.found.segments})
    for group in by_partition(_files(request, log, notes).segments):
        options = request.interval.within(request.options, group)
        _check_is_there(request, group, options)
        yield group, options if ends is None else ends.within(group, options)


def _files(request: Request, log: Log, notes: list[str]) -> Discovery:
    """Return the files of what is asked for, with what lines lack from other replicas; notes receive what that is."""
    table = request.definition
    found = log.files_of(table)
    if table.replicas is Replicas.LINE:
        notes.extend(log.lines.notes(heals=request.options.heal))
    return log.healed(found, request.options, notes) if table.replicas is Replicas.LINE else found


def _plan_partitions(request: Request, wanted: Wanted, fold: Fold) -> list[Part]:
    size = sum(segment.size for group, _ in wanted for segment in group)
    range_bytes = max(1, min(range_bytes_of(request, wanted), size // request.min_partitions))
    maps = maps_of(request, wanted, fold)
    while True:
        parts = list(chain.from_iterable(parts_of(request, wanted, range_bytes, maps)))
        if len(parts) >= request.min_partitions or request.definition.cut not in _RANGES or range_bytes == 1:
            return parts
        range_bytes = range_bytes // 2 if range_bytes > SMALL_RANGE_BYTES else 1


def maps_of(request: Request, wanted: Wanted, fold: Fold = in_threads) -> Maps:
    """Return the transactions of each partition if a request needs them.

    Parameters
    ----------
    request : Request
    wanted : list of tuple
    fold : callable
        Makes the passes over headers of segments whose index and snapshot files are missing.
    """
    columns = library_columns(request.columns)
    maps: Maps = [
        TransactionMap(group, every="visible_at" in columns, strict=options.strict)
        if request.definition.cut is TaskCut.RANGES
        and needs_transactions(options, columns)
        and not is_metadata(group[0])
        else None
        for group, options in wanted
    ]

    def lacking(at: int) -> list[int]:
        group, options = wanted[at]
        paths = {segment.path for segment in relevant(group, options)}
        numbers = [number for number, segment in enumerate(group) if segment.path in paths]
        found = maps[at]
        return [] if found is None else found.header_passes(numbers)

    todo = list(in_order(lacking, range(len(maps)), PARTITIONS_AT_ONCE))
    passes = [
        found.header_pass(number) for found, numbers in zip(maps, todo, strict=True) if found for number in numbers
    ]
    results = iter(fold(passes)) if passes else iter(())
    for found, numbers in zip(maps, todo, strict=True):
        if found is not None:
            found.take(numbers, list(islice(results, len(numbers))))
    return maps


def range_bytes_of(request: Request, wanted: Wanted) -> int:
    """Return the bytes of log per task; checks of many segments read each as a whole."""
    if request.range_bytes is not None:
        return request.range_bytes
    is_whole = request.definition.cut is TaskCut.CHECKS and has_many_segments(wanted)
    return NO_BOUND if is_whole else DEFAULT_RANGE_BYTES


def has_many_segments(wanted: Wanted) -> bool:
    """Whether there are so many segments that these are cut by their index files, not by their headers."""
    segments = chain.from_iterable(relevant(group, options) for group, options in wanted)
    return next(islice(segments, MANY_SEGMENTS - 1, None), None) is not None


def parts_of(request: Request, wanted: Wanted, range_bytes: int, maps: Maps | None = None) -> Iterator[list[Part]]:
    """Return what tasks read of each partition, in order; threads plan several partitions at the same time.

    Parameters
    ----------
    request : Request
    wanted : list of tuple
        The segments of each partition, in order, and options with its offset bounds.
    range_bytes : int
        Bytes of log in a range.
    maps : list of TransactionMap or None, optional
        The transactions of each partition.
    """
    maps = maps_of(request, wanted) if maps is None else maps
    each = zip(wanted, maps, strict=True)
    cutting = _Cutting(range_bytes, request.definition.cut is TaskCut.RANGES and has_many_segments(wanted))
    return in_order(lambda one: _parts_of_one(request, *one[0], cutting, one[1]), each, PARTITIONS_AT_ONCE)


class _Cutting(NamedTuple):
    """How segments are cut, as in ``kraftlog.read.ranges.plan``."""

    range_bytes: int
    at_entries: bool


def _parts_of_one(
    request: Request,
    group: list[Segment],
    options: ReadOptions,
    cutting: _Cutting,
    transactions: TransactionMap | None,
) -> list[Part]:
    parts: list[Part] = []
    faults: list[Fault] = []
    for work in _works(request, group, options, cutting, transactions, faults):
        parts.append(Part(work, options, tuple(faults)))
        faults.clear()
    if faults:  # and nothing to read
        parts.append(Part(WholePartition(()), options, tuple(faults)))
    return parts


def _works(
    request: Request,
    group: list[Segment],
    options: ReadOptions,
    cutting: _Cutting,
    transactions: TransactionMap | None,
    faults: list[Fault],
) -> Iterator[Work]:
    cut, (range_bytes, at_entries) = request.definition.cut, cutting
    if transactions is not None:
        read = Pass(options, range_bytes=range_bytes)
        ranges = list(PartitionRanges(transactions, read, all_at_once=True, at_entries=at_entries).ranges())
        faults += transactions.faults
        yield from ranges
    elif request.definition.cut is TaskCut.RANGES and needs_transactions(options, library_columns(request.columns)):
        yield from metadata_ranges(group, Pass(options, faults, range_bytes=range_bytes))
    elif cut in _RANGES:
        yield from plan_at_once(group, options, range_bytes, at_entries=at_entries)
    elif cut is TaskCut.SEGMENTS:
        yield from plan(group, options, None)
    if cut in (TaskCut.PARTITIONS, TaskCut.CHECKS):
        yield WholePartition(tuple(group))


def _check_is_there(request: Request, group: list[Segment], options: ReadOptions) -> None:
    """Raise when the requested offsets begin before the start of the log or after its end."""
    first, start = log_start_offset(group, options), options.start_offset
    if not request.fail_on_data_loss or start < 0:
        return
    asked = f"{group[0].topic}-{group[0].partition}: startingOffsets asks for offset {start}, but the log"
    if start < first:
        raise ValueError(f"{asked} begins at {first}; with failOnDataLoss=false it is read from there")
    if start > (group[-1].base_offset or 0):
        end = end_offset(group[-1], [])  # the task reports what cannot be read there
        if start > end:
            raise ValueError(f"{asked} ends at {end}; with failOnDataLoss=false nothing is read of it")
