"""The end of a partition's log, for a reader that returns while it grows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends, indexed_batch
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.markers import scan_markers
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import is_metadata, log_start_offset, opened_before_segment
from kraftlog.read.seek import index_entries
from kraftlog.read.segment_reader import segment_headers
from kraftlog.transactions.metadata_columns import Stretch
from kraftlog.transactions.metadata_fold import MetadataTransactionFold
from kraftlog.transactions.producer import TransactionFold
from kraftlog.types import InputFile

REMEMBERED_BYTES = 64 << 20  # before the end of a segment, from where on its batches are remembered


@dataclass(frozen=True)
class LogBounds:
    """Offsets of one partition.

    Attributes
    ----------
    log_start_offset : int
    log_end_offset : int
        The offset after the last intact batch. A partly written batch is ignored.
    last_stable_offset : int
        With ``read_committed`` the first offset of the earliest open transaction, if any; otherwise the end.
    high_watermark : int
        The high watermark, for streams that use it.
    """

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int = NO_BOUND

    @property
    def readable_offset(self) -> int:
        """The offset up to which a reader reads."""
        return max(self.log_start_offset, min(self.last_stable_offset, self.high_watermark))


@dataclass(frozen=True)
class _Place:
    """Position in a segment: the end of its last intact batch, and this batch."""

    path: LogPath
    position: int = 0
    batch: tuple[int, int, int] | None = None


class _Batch(NamedTuple):
    """A remembered batch, for comparison with one at the same offsets."""

    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    crc: int
    records_count: int

    def is_still(self, there: _Batch | None) -> bool:
        """Whether the batch at its position is unchanged, or a compacted form of it."""
        if there is None or there[:3] != self[:3]:
            return False
        return there.crc == self.crc or there.records_count < self.records_count


class GrowingLogEnd:
    """The end of a growing partition's log: only new data is read at each look.

    Parameters
    ----------
    options : ReadOptions
        With ``read_committed`` transactions are followed.
    remembers : int
        Number of last batches to remember, for detecting truncation.

    Attributes
    ----------
    kept_offset : int or None
        After a look at a log that was truncated or replaced: offsets before it are unchanged. If no remembered batch is
        left, it is the first remembered offset.
    """

    def __init__(self, options: ReadOptions, remembers: int = 0) -> None:
        self.kept_offset: int | None = None
        self._remembered: deque[_Batch] = deque(maxlen=remembers)
        self._remembers = remembers > 0
        self._options = options
        self._follows_transactions = options.isolation_level == READ_COMMITTED
        self._place: _Place | None = None
        self._fold: TransactionFold | MetadataTransactionFold = TransactionFold()
        self._next_offset = 0
        self._group: list[Segment] = []
        self._bounds: LogBounds | None = None

    def bounds(self, group: list[Segment]) -> LogBounds:
        """Read the new data.

        Remote files of unchanged sizes are not read: a file that was replaced is noticed when it grows. Local ones may
        be truncated and grow again.

        Parameters
        ----------
        group : list of Segment
            The current segments of the partition, in order.
        """
        self.kept_offset = None
        if group == self._group and self._bounds is not None and isinstance(group[-1].path, RemotePath):
            return self._bounds
        before = self._place
        index = self._index_in(group)
        if self._remembers and before is not None and self._place is None:
            self.kept_offset = self._kept(group)
        for segment in group[index:]:
            self._look_at(segment)
        start = log_start_offset(group, self._options)
        self._group, self._bounds = group, LogBounds(start, self._next_offset, max(start, self._last_stable_offset()))
        return self._bounds

    def _index_in(self, group: list[Segment]) -> int:
        """Return the index of the segment at which to continue; for another log, start again."""
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

    def _kept(self, group: list[Segment]) -> int | None:
        """Return the offset up to which remembered batches are unchanged; None without remembered batches."""
        if not self._remembered:
            return None
        first = self._remembered[0].base_offset
        following = [segment.base_offset or 0 for segment in group[1:]]
        ahead = [segment for segment, end in zip(group, [*following, NO_BOUND], strict=True) if end > first]
        there = {
            batch.base_offset: batch
            for segment in ahead
            for headers in segment_headers(segment, [], check_crc=True)
            for batch in _batches(headers[headers["crc_ok"] == 1])
        }
        start = group[0].base_offset or 0  # what lay before it was deleted, which is no cut
        unchanged = [
            batch
            for batch in self._remembered
            if batch.last_offset < start or batch.is_still(there.get(batch.base_offset))
        ]
        self._remembered.clear()
        return unchanged[-1].last_offset + 1 if unchanged else first

    def _is_as_it_was(self, place: _Place) -> bool:
        """Whether the last batch is unchanged: a log may be truncated and grow again."""
        if place.batch is None:
            return place.position == 0
        at = place.batch[0]
        headers = next(HeaderScan(disk().open(place.path), at, at + 1).headers(1), None)
        return headers is not None and _what_is(headers[0]) == place.batch

    def _look_at(self, segment: Segment) -> None:
        if self._place is None or self._place.path != segment.path:
            # what lies before the last entry of the index matters to transactions alone
            ahead = REMEMBERED_BYTES if self._remembers else 0
            self._place = _Place(segment.path, 0 if self._follows_transactions else _last_entry(segment, ahead))
        self._next_offset = max(self._next_offset, segment.base_offset or 0)
        start = self._place.position
        file = disk().open(segment.path, segment.size)
        for headers in HeaderScan(file, start, check_control=True).headers():
            sound = _sound(file, headers)
            if len(sound):
                if isinstance(self._fold, TransactionFold):
                    self._fold.add(sound)
                if self._remembers:
                    self._remembered.extend(_batches(sound))
                self._next_offset = max(self._next_offset, int(last_offsets(sound).max()) + 1)
                self._place = _Place(segment.path, int(ends(sound)[-1]), _what_is(sound[-1]))
        if isinstance(self._fold, MetadataTransactionFold):
            for block in scan_markers(file, [], start=start, end=self._place.position):
                self._fold.add(Stretch.of(block))

    def _last_stable_offset(self) -> int:
        if not self._follows_transactions:
            return self._next_offset
        if isinstance(self._fold, MetadataTransactionFold):
            since = self._fold.open_since
            return self._next_offset if since is None else min(self._next_offset, since)
        opened = self._fold.open["first_offset"]
        return min(self._next_offset, int(opened[0])) if len(opened) else self._next_offset


def _sound(file: InputFile, headers: Headers) -> Headers:
    """Return the headers of sound batches, of which only some are read.

    The walk verifies markers, and batches that no header follows. The last ones are verified here, down to a sound one,
    since they may still be being written, and those whose offsets do not ascend: one of their headers is damaged.
    """
    sound, last = headers["crc_ok"].copy(), last_offsets(headers)
    back = np.flatnonzero(last[:-1] >= headers["base_offset"][1:])
    for at in np.unique(np.concatenate([back, back + 1])):
        sound[at] = _is_sound(file, headers, at)
    for at in range(len(headers) - 1, -1, -1):
        if sound[at] < 0:
            sound[at] = _is_sound(file, headers, at)
        if sound[at]:
            break
    kept: Headers = headers[sound != 0]
    return kept


def _is_sound(file: InputFile, headers: Headers, at: int) -> bool:
    position = int(headers["position"][at])
    found = next(HeaderScan(file, position, position + 1, check_crc=True).headers(1), None)
    return found is not None and bool(found["crc_ok"][0] == 1)


def _batches(headers: Headers) -> list[_Batch]:
    names = ("base_offset", "partition_leader_epoch", "crc", "records_count")
    base_offsets, epochs, crcs, counts = (headers[name].tolist() for name in names)
    return list(map(_Batch, base_offsets, last_offsets(headers).tolist(), epochs, crcs, counts))


def _what_is(header: np.void) -> tuple[int, int, int]:
    return int(header["position"]), int(header["base_offset"]), int(header["crc"])


def _last_entry(segment: Segment, ahead: int) -> int:
    """Return the start of the last indexed batch at least this number of bytes before the segment's end."""
    index = index_entries(segment)
    at = -1 if index is None else int(np.searchsorted(index[1], segment.size - ahead, side="right")) - 1
    if index is None or at < 0:
        return 0
    file = disk().open(segment.path, segment.size)
    return int(index[1][at]) if indexed_batch(file, *index, at) is not None else 0
