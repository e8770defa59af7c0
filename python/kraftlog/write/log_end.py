"""The end of a partition's log for a writer: the part to keep, the part to truncate, and the state there.

Batches are checked from the recovery point on, before which everything is known to be on disk; without one, in the last
segment. A torn tail of the last segment, which a stopped writer leaves, is truncated. If sound batches or segments
follow damage, a truncation removes them as well. After the recovery point they were never acknowledged, and are
truncated as by Kafka's recovery. Before it they may have been acknowledged, and opening the log is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.leader_epochs import LeaderEpochs
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.read.index_interval import shown_interval
from kraftlog.transactions.last_batches import LastBatches
from kraftlog.write.log_files import segment_file
from kraftlog.write.producers import LogProducers, ScannedProducers, producers_before
from kraftlog.write.segment_state import SegmentState, read_segment
from kraftlog.write.transaction_index import kept_txnindex


@dataclass(frozen=True)
class CheckedSegment:
    """A segment whose batches were read.

    Attributes
    ----------
    state : SegmentState
    txnindex : bytes
        Entries of its ``.txnindex``.
    snapshot : bytes
        The producers before it, as a ``.snapshot`` file.
    """

    base_offset: int
    state: SegmentState
    txnindex: bytes
    snapshot: bytes


@dataclass
class LogEnd:
    """The end of a log, for ``PartitionLog``; nothing has been changed yet.

    Attributes
    ----------
    segments : list of Segment
        Segments to keep.
    checked : list of CheckedSegment
        Segments that were read; the last one is the one to append to. Empty without segments.
    behind : list of Segment
        Segments after the cut.
    snapshots : list of int
        Offsets of the ``.snapshot`` files.
    start_offset : int
        Start of the log if there is no segment.
    epochs : LeaderEpochs
    producers : LogProducers
        Producers at the end.
    last_batches : LastBatches
        Of the batches that were read, and one of each producer of the snapshot before them.
    recovery_point : int or None
        The offset up to which everything is known to be on disk.
    is_closed : bool
        Whether the log was closed cleanly, so that all of it is on disk.
    """

    folder: Path
    segments: list[Segment]
    checked: list[CheckedSegment]
    behind: list[Segment]
    snapshots: list[int]
    start_offset: int
    index_interval_bytes: int
    epochs: LeaderEpochs
    producers: LogProducers
    last_batches: LastBatches
    recovery_point: int | None = None
    is_closed: bool = False

    @property
    def next_offset(self) -> int:
        """Offset of the next record."""
        return self.checked[-1].state.next_offset if self.checked else self.start_offset

    @property
    def size(self) -> int:
        """Bytes of sound batches in the last segment."""
        return self.checked[-1].state.size if self.checked else 0


def find_log_end(
    folder: Path,
    *,
    index_interval_bytes: int | None = None,
    recovery_point: int | None = None,
    sound_before: int = 0,
    start_offset: int = 0,
) -> LogEnd:
    """Find the end of a log for a writer; nothing is written.

    Parameters
    ----------
    folder : Path
        Folder of the partition; it need not exist.
    index_interval_bytes : int, optional
        Kafka's ``index.interval.bytes``; by default derived from the ``.index`` of the last segment.
    recovery_point : int, optional
        The offset up to which everything is known to be on disk; None if unknown.
    sound_before : int
        The caller has already checked the batches before this offset.
    start_offset : int
        Start of the log if there is no segment.

    Raises
    ------
    CorruptRecordError
        When there are sound batches or segments, which may have been acknowledged, after damage.
    """
    listed = PartitionFolder.of(folder) if disk().entry(folder) is not None else PartitionFolder(folder, ())
    segments = listed.segments
    interval = shown_interval(segments[-1:]) if index_interval_bytes is None else index_interval_bytes
    first = _first_to_check(segments, recovery_point)
    sound_segments, behind = segments, list[Segment]()
    checked: list[CheckedSegment] = []
    snapshots = sorted(listed.producer_snapshots) if segments else []
    producers = ScannedProducers()
    if segments:
        producers = producers_before(folder, segments[:first], snapshots, segments[first].base_offset or 0)
    for at, segment in enumerate(segments[first:], first):
        check = _check(segment, interval, producers, sound_before)
        checked.append(check)
        later = segments[at + 1 :]
        if check.state.size == segment.size and check.state.fault is None:
            continue
        if (later or check.state.sound_behind) and (recovery_point is None or check.state.next_offset < recovery_point):
            raise _refusal(segment, check.state, len(later))
        sound_segments, behind = segments[: at + 1], later
        break
    next_offset = checked[-1].state.next_offset if checked else start_offset
    epochs = LeaderEpochs(folder, next_offset + 1, [each for check in checked for each in check.state.epochs])
    if not epochs.is_in_file:
        for segment in sound_segments[:first]:
            epochs.add(
                read_segment(segment.local_path, segment.base_offset or 0, interval, sound_before=NO_BOUND).epochs
            )
    return LogEnd(
        folder,
        sound_segments,
        checked,
        behind,
        snapshots,
        start_offset,
        interval,
        epochs,
        producers.producers,
        producers.last_batches,
        recovery_point,
    )


def _first_to_check(segments: list[Segment], recovery_point: int | None) -> int:
    last = max(len(segments) - 1, 0)
    if recovery_point is None:
        return last
    before = [at for at, segment in enumerate(segments) if (segment.base_offset or 0) <= recovery_point]
    return min(before[-1] if before else 0, last)


def _check(segment: Segment, interval: int, producers: ScannedProducers, sound_before: int) -> CheckedSegment:
    base_offset = segment.base_offset or 0
    snapshot = producers.producers.snapshot()
    aborted: list[bytes] = []
    state = read_segment(
        segment.local_path,
        base_offset,
        interval,
        on_headers=lambda headers: aborted.append(producers.add(headers)),
        sound_before=sound_before,
    )
    path = segment_file(segment.local_path.parent, base_offset, "txnindex")
    return CheckedSegment(base_offset, state, kept_txnindex(path, b"".join(aborted), state.next_offset), snapshot)


def _refusal(segment: Segment, state: SegmentState, later: int) -> CorruptRecordError:
    fault = state.fault or Fault("torn_tail", f"torn tail of {segment.size - state.size} bytes", state.size)
    located = fault.located(segment.name, segment.topic, segment.partition, segment.base_offset)
    follows = "1 segment follows" if later == 1 else f"{later} segments follow"
    behind = "there are sound batches after it" if state.sound_behind else follows
    return CorruptRecordError(f"{located.message}; {behind}: see `kraftlog recover`", located)
