"""Where the log of a partition ends, for a reader that comes back while it grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.markers import scan_markers
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import is_metadata, log_start_offset, opened_before_segment
from kraftlog.read.seek import seek
from kraftlog.transactions.metadata_columns import Stretch
from kraftlog.transactions.metadata_fold import MetadataTransactionFold
from kraftlog.transactions.producer import TransactionFold


@dataclass(frozen=True)
class LogBounds:
    """Offsets of one partition.

    Attributes
    ----------
    log_start_offset : int
    log_end_offset : int
        Behind the last sound batch. A batch that is still being written is not looked at.
    last_stable_offset : int
        With ``read_committed`` the first offset of the earliest open transaction, if there is one; else the end.
    high_watermark : int
        Up to where the log is replicated, where a stream heeds that.
    """

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int = NO_BOUND

    @property
    def readable_offset(self) -> int:
        """Up to where a reader reads."""
        return max(self.log_start_offset, min(self.last_stable_offset, self.high_watermark))


@dataclass(frozen=True)
class _Place:
    """How far a segment was looked at: the byte behind its last sound batch, and where and what that batch is."""

    path: LogPath
    position: int = 0
    batch: tuple[int, int, int] | None = None


class GrowingLogEnd:
    """The end of one partition's log, as it grows: only what is new since the last look is gone over.

    Parameters
    ----------
    options : ReadOptions
        With ``read_committed`` transactions are followed.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._follows_transactions = options.isolation_level == READ_COMMITTED
        self._place: _Place | None = None
        self._fold: TransactionFold | MetadataTransactionFold = TransactionFold()
        self._next_offset = 0

    def bounds(self, group: list[Segment]) -> LogBounds:
        """Look at what is new.

        Parameters
        ----------
        group : list of Segment
            The segments of the partition, in order, as they were listed just now.
        """
        for segment in group[self._index_in(group) :]:
            self._look_at(segment)
        start = log_start_offset(group, self._options)
        return LogBounds(start, self._next_offset, max(start, self._last_stable_offset()))

    def _index_in(self, group: list[Segment]) -> int:
        """Return the number of the segment where it goes on; when the log is not the one it knew, it starts anew."""
        paths = [segment.path for segment in group]
        if self._place is not None and self._place.path in paths and self._is_as_it_was(self._place):
            return paths.index(self._place.path)
        index = len(group) - 1
        if self._follows_transactions and is_metadata(group[0]):  # no snapshot says what is open
            index = 0
            self._fold = MetadataTransactionFold(begun_before=bool(group[0].base_offset))
        elif self._follows_transactions:
            reported: list[Fault] = []  # snapshots that cannot be read are noted where tasks are planned
            opened = opened_before_segment(group[index], reported)
            while opened is None and index > 0:
                index -= 1
                opened = opened_before_segment(group[index], reported)
            self._fold = TransactionFold() if opened is None else TransactionFold(opened)
        self._place = None
        self._next_offset = group[index].base_offset or 0
        return index

    def _is_as_it_was(self, place: _Place) -> bool:
        """Whether the last batch that was looked at is still there: a log may be truncated and grow again."""
        if place.batch is None:
            return place.position == 0
        at = place.batch[0]
        found = next(HeaderScan(disk().open(place.path), at, at + 1).headers(1), None)
        return found is not None and _what_is(found[0]) == place.batch

    def _look_at(self, segment: Segment) -> None:
        if self._place is None or self._place.path != segment.path:
            # what lies before the last entry of the index matters to transactions alone
            self._place = _Place(segment.path, 0 if self._follows_transactions else _last_entry(segment))
        self._next_offset = max(self._next_offset, segment.base_offset or 0)
        start = self._place.position
        file = disk().open(segment.path, segment.size)
        for headers in HeaderScan(file, start, check_crc=True).headers():
            sound = headers[headers["crc_ok"] == 1]
            if len(sound):
                if isinstance(self._fold, TransactionFold):
                    self._fold.add(sound)
                self._next_offset = max(self._next_offset, int(last_offsets(sound).max()) + 1)
                self._place = _Place(segment.path, int(ends(sound)[-1]), _what_is(sound[-1]))
        if isinstance(self._fold, MetadataTransactionFold):
            for block in scan_markers(file, [], start=start, end=self._place.position):
                self._fold.add(Stretch(*block[:5], cut=block.cut))

    def _last_stable_offset(self) -> int:
        if not self._follows_transactions:
            return self._next_offset
        if isinstance(self._fold, MetadataTransactionFold):
            since = self._fold.open_since
            return self._next_offset if since is None else min(self._next_offset, since)
        opened = self._fold.open["first_offset"]
        return min(self._next_offset, int(opened[0])) if len(opened) else self._next_offset


def _what_is(header: np.void) -> tuple[int, int, int]:
    return int(header["position"]), int(header["base_offset"]), int(header["crc"])


def _last_entry(segment: Segment) -> int:
    """Return where the last batch begins that the index of a segment knows."""
    return seek(segment, disk().open(segment.path, segment.size), ReadOptions(start_offset=NO_BOUND))[0]
