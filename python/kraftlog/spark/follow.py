"""Following logs as they grow: where a micro-batch begins and ends, and what its tasks read. It does not need Spark.

Offsets below the end of a micro-batch no longer change, so a micro-batch has the same rows whenever it is read. The end
is that of the last whole sound batch: a torn one after it is still being written. With ``read_committed`` it is the
last stable offset, below which every transaction has ended.

The log end of one replica may be greater than the end that a consumer sees, and what its leader has not replicated can
be truncated away. So a stream stops at the high watermark, where ``replication-offset-checkpoint``, which a broker
writes every five seconds, has one. The option ``highWatermark`` changes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, error_from_fault
from kraftlog.layout.checkpoints import HIGH_WATERMARKS, read_offset_checkpoint
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_ends import GrowingLogEnd, LogBounds
from kraftlog.read.partitions import by_partition
from kraftlog.spark.data_loss import report_data_loss
from kraftlog.spark.offsets import EARLIEST, LATEST, Partition
from kraftlog.spark.parts import Part, Wanted, parts_of, range_bytes_of
from kraftlog.spark.request import Request
from kraftlog.spark.stream_offsets import Offsets
from kraftlog.spark.task import size_of
from kraftlog.spark.wanted_bytes import within_bounds
from kraftlog.tables.lines import Lines
from kraftlog.tables.unread_files import unreadable
from kraftlog.topics import CLUSTER_METADATA

Looked = dict[Partition, tuple[list[Segment], LogBounds]]

_LOOKS = 3  # files may be deleted between listing and opening


class LogFollower:
    """The logs that a stream reads; each call lists the files again.

    Parameters
    ----------
    request : Request
        For records or messages.

    Raises
    ------
    ValueError
        When the table of the request cannot be followed.
    """

    def __init__(self, request: Request) -> None:
        if not request.definition.has_records:
            raise ValueError(f"a stream reads the table records, messages or a type of message, not {request.table}")
        self._request = request
        self._ends: dict[Partition, GrowingLogEnd] = {}

    def starting(self) -> Offsets:
        """Return where a new query begins.

        Raises
        ------
        ValueError
            When a named topic or partition does not exist, or the starting offsets are outside of the log.
        CorruptRecordError
            When a folder cannot be listed.
        """
        looked = self._look()
        self._request.log()
        position = self._request.interval.starting
        if missing := sorted(position.each.keys() - looked.keys()):
            names = ", ".join(map(_name, missing))
            raise ValueError(f"offsets are set for {names}, but the stream reads {', '.join(map(_name, looked))}")
        starting: Offsets = {}
        for partition, (group, bounds) in looked.items():
            place = position.of(*partition, group)
            if not position.is_timestamp and place > bounds.log_end_offset:
                end = bounds.log_end_offset
                raise ValueError(
                    f"{_name(partition)}: startingOffsets asks for offset {place}, but the log ends at {end}"
                )
            at_ends = {EARLIEST: bounds.log_start_offset, LATEST: bounds.readable_offset}
            starting[partition] = at_ends.get(place, place)
        return starting

    def bounds(self) -> dict[Partition, LogBounds]:
        """Return where each partition begins and ends now."""
        return {partition: bounds for partition, (_, bounds) in self._look().items()}

    def parts(self, start: Mapping[Partition, int], end: Mapping[Partition, int]) -> list[Part]:
        """Return what the tasks of a micro-batch read.

        Raises
        ------
        DataLossError
            When some of its offsets are no longer in the log, with ``failOnDataLoss``.
        """
        looked = self._look()
        for partition in sorted(start.keys() - end.keys()):
            self._report(f"{_name(partition)} is gone")
        wanted = []
        for partition, until in end.items():
            group, bounds = looked.get(partition, ([], None))
            begin = self._begin(_name(partition), start.get(partition), until, bounds)
            if begin < until:
                wanted.append((group, replace(self._request.options, start_offset=begin, end_offset=until)))
        parts = self._planned(wanted, range_bytes_of(self._request, wanted))
        if len(parts) < self._request.min_partitions:
            parts = self._planned(wanted, max(1, sum(map(size_of, parts)) // self._request.min_partitions))
        return [replace(part, number=number) for number, part in enumerate(parts)]

    def _begin(self, name: str, start: int | None, until: int, bounds: LogBounds | None) -> int:
        """Return where reading of a partition begins, and report offsets that are missing."""
        if bounds is None:
            self._report(f"{name} is gone")
            return until
        if start is None:
            start = bounds.log_start_offset
            if start > 0:
                self._report(f"{name} was added and begins at offset {start} instead of 0")
        if until < start:
            self._report(f"{name}: the end of the log went back from offset {start} to {until}")
        if until > start and start < bounds.log_start_offset:
            last = min(until, bounds.log_start_offset) - 1
            self._report(f"{name}: offsets {start} to {last} are gone, the log begins at {bounds.log_start_offset}")
        if until > start and until > bounds.log_end_offset:
            first = max(start, bounds.log_end_offset)
            self._report(f"{name}: offsets {first} to {until - 1} are gone, the log ends at {bounds.log_end_offset}")
        elif until > start and until > bounds.last_stable_offset:
            raise ValueError(
                f"{name}: a micro-batch ends at offset {until}, after the last stable offset"
                f" {bounds.last_stable_offset}; was it planned with another isolation level?"
            )
        return max(start, bounds.log_start_offset)

    def _planned(self, wanted: Wanted, range_bytes: int) -> list[Part]:
        planned = zip(wanted, parts_of(self._request, wanted, range_bytes), strict=True)
        return [part for (group, options), parts in planned for part in within_bounds(parts, group, options)]

    def _look(self) -> Looked:
        for _ in range(_LOOKS - 1):
            try:
                return self._look_once()
            except FileNotFoundError:
                continue
        return self._look_once()

    def _look_once(self) -> Looked:
        groups = self._groups()
        self._ends = {
            partition: self._ends.get(partition) or GrowingLogEnd(self._request.options) for partition in groups
        }
        looked = {partition: (group, self._ends[partition].bounds(group)) for partition, group in groups.items()}
        return looked if self._request.high_watermark == "false" else self._up_to_high_watermarks(looked)

    def _up_to_high_watermarks(self, looked: Looked) -> Looked:
        """Return the bounds with high watermarks from checkpoints; an absent one is 0 with ``true``, as in a broker."""
        absent = 0 if self._request.high_watermark == "true" else NO_BOUND
        marks: dict[LogPath, Offsets] = {}
        bounded = {}
        for partition, (group, bounds) in looked.items():
            directory = group[-1].folder.absolute().parent  # earlier segments may be in a remote tier
            if partition[0] == CLUSTER_METADATA:
                self._check_metadata_log(partition)
            elif directory not in marks:
                marks[directory] = self._high_watermarks(directory / HIGH_WATERMARKS)
            mark = marks.get(directory, {}).get(partition, absent)
            bounded[partition] = group, replace(bounds, high_watermark=mark)
        return bounded

    def _check_metadata_log(self, partition: Partition) -> None:
        if self._request.high_watermark == "true":
            raise ValueError(
                f"{_name(partition)}: no broker writes its high watermark into {HIGH_WATERMARKS}; with option"
                " highWatermark=true select other topics with subscribe, subscribePattern or assign"
            )

    def _high_watermarks(self, path: LogPath) -> Offsets:
        """Return the entries of a checkpoint; without ``true`` it may be missing."""
        try:
            return read_offset_checkpoint(path)
        except FileNotFoundError:
            if self._request.high_watermark == "true":
                raise
            return {}
        except CorruptRecordError as error:
            raise CorruptRecordError(
                f"{path.parent}: {error}; a stream stops at its high watermarks, unless option highWatermark is false"
            ) from None

    def _groups(self) -> dict[Partition, list[Segment]]:
        """Return the segments of each partition that exists; a named partition that does not is not an error here."""
        groups: dict[Partition, list[Segment]] = {}
        wants, found = self._request.selection.wants, self._found()
        # without an error it would seem deleted, and the stream would reread it from its start once it can be listed
        # again
        there = [item for item in found.unread if item.is_fault and disk().entry(item.path) is not None]
        for fault in unreadable(Discovery(unread=there)):
            if wants(fault.topic, fault.partition):
                raise error_from_fault(fault)
        for group in by_partition(Lines(found.only(wants)).found.segments):
            topic, partition = group[0].topic, group[0].partition
            if topic is None or partition is None or group[0].base_offset is None or group[0].state:
                raise ValueError(f"{group[0].name}: a stream reads only files in partition folders")
            groups[topic, partition] = group
        return dict(sorted(groups.items()))

    def _found(self) -> Discovery:
        try:
            return self._request.found()
        except ValueError:  # no folder has a log: the last topic was deleted
            return Discovery()

    def _report(self, what: str) -> None:
        report_data_loss(what, fail=self._request.fail_on_data_loss)


def reached(start: Mapping[Partition, int], bounds: Mapping[Partition, LogBounds]) -> Offsets:
    """Return where a micro-batch without limits ends.

    The stream waits for an offset after the readable end, which a change of the isolation level can leave; an offset
    after the end of the log is reported as lost.

    Parameters
    ----------
    start : mapping of Partition to int
        Where it begins.
    bounds : mapping of Partition to LogBounds
        Bounds of all partitions.
    """
    ends = {partition: of.readable_offset for partition, of in bounds.items()}
    waited_for = {
        partition: offset
        for partition, offset in start.items()
        if partition in bounds and ends[partition] < offset <= bounds[partition].log_end_offset
    }
    return ends | waited_for


def begun(start: Mapping[Partition, int], bounds: Mapping[Partition, LogBounds]) -> Offsets:
    """Return where a micro-batch begins in each partition: in new ones at the start of the log."""
    return {partition: start.get(partition, of.log_start_offset) for partition, of in bounds.items()}


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
