"""Which leaders wrote a log, and up to where two replicas of a partition agree (KIP-101, KIP-279)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.codec.headers import Headers
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import last_header
from kraftlog.read.segment_reader import segment_headers

NO_EPOCH = -1


class LeaderEpoch(NamedTuple):
    """A leader epoch, and the offset of the first batch that has it."""

    epoch: int
    start_offset: int


@dataclass(frozen=True)
class Lineage:
    """The leader epochs of a log, and its end.

    Attributes
    ----------
    epochs : tuple of LeaderEpoch
        In order; both epochs and offsets rise. Batches before the first one have no epoch.
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

        A batch begins an epoch when its epoch is larger than all before it, which is the rule of Kafka's recovery
        (``LogSegment.recover``). The field is outside of a batch's checksum.
        """
        largest = np.maximum.accumulate(np.concatenate(([NO_EPOCH], epochs)))
        begins = np.flatnonzero(largest[1:] > largest[:-1])
        found = zip(epochs[begins].tolist(), base_offsets[begins].tolist(), strict=True)
        return cls(tuple(LeaderEpoch(epoch, offset) for epoch, offset in found), end_offset)

    @property
    def last_epoch(self) -> int:
        """The largest epoch; -1 when there is none."""
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    def end_of(self, epoch: int) -> int:
        """Return the start offset of the first epoch that is larger than one, or the end of the log."""
        return next((one.start_offset for one in self.epochs if one.epoch > epoch), self.end_offset)

    def common_epoch(self, other: Lineage) -> int:
        """Return the largest epoch that both have; -1 when there is none."""
        return max({one.epoch for one in self.epochs} & {one.epoch for one in other.epochs}, default=NO_EPOCH)

    def continued(self, other: Lineage, until: int) -> Lineage:
        """Return this lineage with what another one has from before it begins.

        Parameters
        ----------
        other : Lineage
            One that shares an epoch with this one.
        until : int
            Where they part.

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
        """Return the offset up to which two replicas hold the same records.

        It is what a follower truncates its log to: the smaller of both ends of the largest epoch that both have.
        Without a common epoch, the follower of KIP-279 asks for smaller and smaller epochs, until it asks for one that
        is smaller than the first of the other log. For that one ``LeaderEpochFileCache.endOffsetFor`` names the start
        of this first epoch. So the logs agree up to where the log with the larger first epoch begins, but no further
        than the epochs before it last in the other log.

        In a compacted log an epoch ends where the next one has its first record that is left, which may be later than
        where it ended: what lies between is in one log alone.

        Returns
        -------
        int or None
            None when a log has no epochs (before message format 2): a broker relies on the high watermark there.
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
    """The leader epoch of the last sound batch of a log, and the offset after it. The greater of two ends is newer."""

    last_epoch: int
    end_offset: int


def log_end(segments: Sequence[Segment], faults: list[Fault]) -> LogEnd:
    """Return where a log ends, from the last batches alone.

    Parameters
    ----------
    segments : sequence of Segment
        Live ones of one replica, in order.
    faults : list of Fault
        Receives what is damaged or cannot be read there.
    """
    for segment in reversed(segments):
        last = last_header(segment, faults, check_crc=True)
        if last is not None:
            return LogEnd(int(last["partition_leader_epoch"]), int(last["base_offset"] + last["last_offset_delta"]) + 1)
    return LogEnd(NO_EPOCH, segments[0].base_offset or 0)


def lineage_of(segments: Sequence[Segment], end: LogEnd, faults: list[Fault]) -> Lineage:
    """Return the lineage of a log, from the batch headers of those segments in which a leader may have changed.

    Epochs never fall in a log: where two segments begin with the same epoch, the first of them is not read further.
    Where they have none, messages of old formats, it is: others may lie between.

    Parameters
    ----------
    segments : sequence of Segment
        Live ones of one replica, in order.
    end : LogEnd
        Of this log.
    faults : list of Fault
        Receives what is damaged or cannot be read.
    """
    written = [segment for segment in segments if segment.size]
    firsts = [next((headers[:1] for headers in segment_headers(segment, [], end=1)), None) for segment in written]
    starts = [None if first is None else int(first["partition_leader_epoch"][0]) for first in firsts]
    found: list[Headers] = []
    for segment, first, (epoch, following) in zip(written, firsts, pairwise([*starts, end.last_epoch]), strict=True):
        if first is not None and epoch == following != NO_EPOCH:
            found.append(first)
        else:
            found += segment_headers(segment, faults)
    epochs, base_offsets = (
        np.concatenate([np.empty(0, np.int64), *(headers[name] for headers in found)])
        for name in ("partition_leader_epoch", "base_offset")
    )
    return Lineage.of_batches(epochs, base_offsets, end.end_offset)
