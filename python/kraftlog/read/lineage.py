"""The leader epochs of a log, and the offset up to which two replicas agree (KIP-101, KIP-279)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import last_header
from kraftlog.read.segment_reader import segment_headers

NO_EPOCH = -1


class LeaderEpoch(NamedTuple):
    """A leader epoch, and the offset of the first batch that has it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset at which the next one begins, or the end of the log."""

    epoch: int
    end_offset: int


@dataclass(frozen=True)
class Lineage:
    """The leader epochs of a log, and its end.

    Attributes
    ----------
    epochs : tuple of LeaderEpoch
        In order; both epochs and offsets increase. Batches before the first one have no epoch.
    end_offset : int

    Examples
    --------
    >>> from kraftlog.read.lineage import LeaderEpoch, Lineage
    >>> leader = Lineage((LeaderEpoch(0, 0), LeaderEpoch(2, 5)), 7)
    >>> leader.agrees_until(Lineage((LeaderEpoch(0, 0),), 10))
    5
    """

    epochs: tuple[LeaderEpoch, ...]
    end_offset: int

    @classmethod
    def of_batches(cls, epochs: npt.NDArray[Any], base_offsets: npt.NDArray[Any], end_offset: int) -> Lineage:
        """Return the lineage of batches, in the order of the log.

        A batch begins an epoch if its epoch is larger than all previous ones, as in Kafka's recovery
        (``LogSegment.recover``). The checksum of a batch does not cover the field.
        """
        largest = np.maximum.accumulate(np.concatenate(([NO_EPOCH], epochs)))
        begins = np.flatnonzero(largest[1:] > largest[:-1])
        starts = zip(epochs[begins].tolist(), base_offsets[begins].tolist(), strict=True)
        return cls(tuple(LeaderEpoch(epoch, offset) for epoch, offset in starts), end_offset)

    def starting_at(self, offset: int) -> Lineage:
        """Return the lineage of a log whose records before an offset are deleted.

        The epoch of that offset begins there, as in ``LeaderEpochFileCache.truncateFromStart``.
        """
        before = [one for one in self.epochs if one.start_offset <= offset]
        if not before:
            return self
        first = LeaderEpoch(before[-1].epoch, offset)
        return Lineage((first, *self.epochs[len(before) :]), self.end_offset)

    @property
    def last_epoch(self) -> int:
        """The largest epoch; -1 if there is none."""
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    def end_of(self, epoch: int) -> int:
        """Return the start offset of the first epoch greater than the given one, or the end of the log."""
        return next((one.start_offset for one in self.epochs if one.epoch > epoch), self.end_offset)

    def end_for(self, epoch: int) -> EpochEnd | None:
        """Return the answer to ``OffsetForLeaderEpoch``, by the rules of ``LeaderEpochFileCache.endOffsetFor``.

        Returns
        -------
        EpochEnd or None
            The end of the largest epoch up to this one. Before all epochs: the start of the first one, with the
            requested epoch. None for an epoch after the last one.

        Examples
        --------
        >>> from kraftlog.read.lineage import LeaderEpoch, Lineage
        >>> log = Lineage((LeaderEpoch(1, 0), LeaderEpoch(4, 20)), 30)
        >>> [tuple(log.end_for(epoch)) for epoch in (0, 1, 3, 4)]
        [(0, 0), (1, 20), (1, 20), (4, 30)]
        """
        if epoch == NO_EPOCH or not self.epochs or epoch > self.last_epoch:
            return None
        earlier = (one.epoch for one in self.epochs if one.epoch <= epoch)
        return EpochEnd(max(earlier, default=epoch), self.end_of(epoch))

    def common_epoch(self, other: Lineage) -> int:
        """Return the largest common epoch; -1 if there is none."""
        return max({one.epoch for one in self.epochs} & {one.epoch for one in other.epochs}, default=NO_EPOCH)

    def continued(self, other: Lineage, until: int) -> Lineage:
        """Return this lineage, preceded by the earlier epochs of another one.

        Parameters
        ----------
        other : Lineage
            A lineage that shares an epoch with this one.
        until : int
            The offset at which they differ.

        Examples
        --------
        >>> from kraftlog.read.lineage import LeaderEpoch, Lineage
        >>> late, early = Lineage((LeaderEpoch(3, 20),), 30), Lineage((LeaderEpoch(1, 0), LeaderEpoch(3, 15)), 25)
        >>> [tuple(one) for one in late.continued(early, 25).epochs]
        [(1, 0), (3, 15)]
        """
        first = self.epochs[0]
        start = min(one.start_offset for one in (first, *other.epochs) if one.epoch == first.epoch)
        before = [one for one in other.epochs if one.epoch < first.epoch and one.start_offset < min(start, until)]
        return Lineage((*before, LeaderEpoch(first.epoch, start), *self.epochs[1:]), self.end_offset)

    def agrees_until(self, other: Lineage) -> int | None:
        """Return the offset up to which two replicas have the same records.

        A follower truncates its log to this offset: the smaller of both ends of the largest common epoch. Without a
        common epoch, the follower of KIP-279 requests decreasing epochs until one is less than the first epoch of the
        other log. For that one ``LeaderEpochFileCache.endOffsetFor`` returns the start of this first epoch. The logs
        therefore agree up to the start of the log with the larger first epoch, but not beyond the end of the epochs
        before it in the other log.

        In a compacted log an epoch ends at the first remaining record of the next one, which may be later than its
        original end: the records in between are only in one log.

        Returns
        -------
        int or None
            None if a log has no epochs (before message format 2): a broker uses the high watermark in this case.
        """
        if not self.epochs or not other.epochs:
            return None
        largest = self.common_epoch(other)
        if largest != NO_EPOCH:
            return min(self.end_of(largest), other.end_of(largest))
        earlier, later = sorted((self, other), key=lambda lineage: lineage.epochs[0].epoch)
        first = later.epochs[0]
        return min(first.start_offset, earlier.end_of(first.epoch))


class LogEnd(NamedTuple):
    """The leader epoch of the last intact batch of a log, and the next offset. The greater of two ends is newer."""

    last_epoch: int
    end_offset: int


def log_end(segments: Sequence[Segment], faults: list[Fault]) -> LogEnd:
    """Return the end of a log, from its last batches only.

    A cleaner may have removed the batches before the last segment, which is empty: the log ends where that one begins.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of one replica, in order.
    faults : list of Fault
        Receives faults at the end.
    """
    least = segments[-1].base_offset or 0
    for segment in reversed(segments):
        last = last_header(segment, faults, check_crc=True)
        if last is not None:
            after = int(last["base_offset"] + last["last_offset_delta"]) + 1
            return LogEnd(int(last["partition_leader_epoch"]), max(after, least))
    return LogEnd(NO_EPOCH, least)


def lineage_of(segments: Sequence[Segment], end: LogEnd, faults: list[Fault]) -> Lineage:
    """Return the lineage of a log, from the batch headers of segments in which the leader may have changed.

    Epochs never decrease in a log: if two segments begin with the same epoch, the first of them is not read further. If
    both have none, as messages of old formats, it is read: others may be between them.

    A broker may delete or replace a segment after ``end`` was read. The epoch of the end is part of the lineage all the
    same: it begins after the batches that were read.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of one replica, in order.
    end : LogEnd
        The end of this log.
    faults : list of Fault
        Receives faults.
    """
    nonempty = [segment for segment in segments if segment.size]
    firsts = [next((headers[:1] for headers in segment_headers(segment, [], end=1)), None) for segment in nonempty]
    starts = [None if first is None else int(first["partition_leader_epoch"][0]) for first in firsts]
    blocks: list[Headers] = []
    for segment, first, (epoch, following) in zip(nonempty, firsts, pairwise([*starts, end.last_epoch]), strict=True):
        if first is not None and epoch == following != NO_EPOCH:
            blocks.append(first)
        else:
            blocks += segment_headers(segment, faults)
    epochs, base_offsets = (
        np.concatenate([np.empty(0, np.int64), *(headers[name] for headers in blocks)])
        for name in ("partition_leader_epoch", "base_offset")
    )
    lineage = Lineage.of_batches(epochs, base_offsets, end.end_offset)
    if lineage.last_epoch >= end.last_epoch:
        return lineage
    start = int(last_offsets(blocks[-1])[-1]) + 1 if blocks else segments[0].base_offset or 0
    return Lineage((*lineage.epochs, LeaderEpoch(end.last_epoch, min(start, end.end_offset))), end.end_offset)
