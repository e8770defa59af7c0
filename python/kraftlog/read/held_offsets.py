"""The offsets of a replica, as ranges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_end import MISSING_BATCHES, end_fault
from kraftlog.read.segment_reader import scanned, segment_file


class Stretch(NamedTuple):
    """Offsets [first_offset, end_offset)."""

    first_offset: int
    end_offset: int


class OffsetSet:
    """A set of offsets.

    Parameters
    ----------
    firsts, ends : array of int64
        Ranges [first, end) in any order. They may touch or overlap, or be empty.

    Examples
    --------
    >>> from kraftlog.read.held_offsets import OffsetSet
    >>> leader, follower = OffsetSet([0], [20]), OffsetSet([0, 8], [5, 12])
    >>> [tuple(one) for one in (leader - follower).within(2, 12)]
    [(5, 8)]
    """

    def __init__(self, firsts: npt.ArrayLike, ends: npt.ArrayLike) -> None:
        first, end = np.asarray(firsts, np.int64), np.asarray(ends, np.int64)
        first, end = first[first < end], end[first < end]
        order = np.argsort(first, kind="stable")
        first, reached = first[order], np.maximum.accumulate(end[order])
        begins = np.ones(len(first), bool)
        begins[1:] = first[1:] > reached[:-1]
        self._firsts = first[begins]
        self._ends = reached[np.append(begins[1:], True)] if len(first) else reached

    @classmethod
    def union(cls, sets: Iterable[OffsetSet]) -> OffsetSet:
        """Return the union of the sets."""
        each = list(sets)
        none = np.empty(0, np.int64)
        firsts = np.concatenate([none, *(one._firsts for one in each)])
        return cls(firsts, np.concatenate([none, *(one._ends for one in each)]))

    def __sub__(self, other: OffsetSet) -> OffsetSet:
        bounds = np.unique(np.concatenate([self._firsts, self._ends, other._firsts, other._ends]))
        firsts, ends = bounds[:-1], bounds[1:]
        remains = self._have(firsts) & ~other._have(firsts)
        return OffsetSet(firsts[remains], ends[remains])

    def _have(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if not len(self._firsts):
            return np.zeros(len(offsets), bool)
        at = np.searchsorted(self._firsts, offsets, side="right") - 1
        return np.asarray((at >= 0) & (offsets < self._ends[at]))

    def has(self, first_offset: int, end_offset: int) -> bool:
        """Whether the set contains all of [first_offset, end_offset); False for an empty range."""
        return self.within(first_offset, end_offset) == [Stretch(first_offset, end_offset)]

    def until(self, end: int) -> OffsetSet:
        """Return the offsets before an offset."""
        return OffsetSet(self._firsts, np.minimum(self._ends, end))

    def within(self, start: int, end: int) -> list[Stretch]:
        """Return the ranges within [start, end), in order."""
        firsts, ends = np.maximum(self._firsts, start), np.minimum(self._ends, end)
        return [Stretch(*one) for one in zip(firsts.tolist(), ends.tolist(), strict=True) if one[0] < one[1]]


class HeldOffsets(NamedTuple):
    """The offsets of a segment by its headers.

    Attributes
    ----------
    offsets : OffsetSet
        Offsets of intact batches; a compacted batch has all offsets from its first to its last one.
    cleaned_until : int
        The offset after the last batch, if a batch lacks records: only a cleaner leaves such a batch, and it cleans
        from the beginning of the log.
    missing : OffsetSet
        Offsets that are missing at the end of the file, and that no cleaner has removed.
    """

    offsets: OffsetSet
    cleaned_until: int
    missing: OffsetSet


def lacks_records(headers: Headers) -> npt.NDArray[np.bool_]:
    """Return which batches have fewer records than offsets, the result of cleaning."""
    lacks: npt.NDArray[np.bool_] = (headers["magic"] >= 2) & (headers["records_count"] <= headers["last_offset_delta"])
    return lacks


def held_offsets(segment: Segment, faults: list[Fault], *, check_crc: bool) -> HeldOffsets:
    """Return the offsets of the intact batches of a segment, from their headers.

    Parameters
    ----------
    segment : Segment
    faults : list of Fault
        Receives each damaged batch or range of bytes.
    check_crc : bool
        Whether to read batches and treat wrong checksums as damage.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.held_offsets import held_offsets
    >>> segment = kraftlog.open("tests/golden/codecs/log/codec-lz4-0").found.segments[0]
    >>> held_offsets(segment, [], check_crc=True).offsets.within(0, 1000)
    [Stretch(first_offset=0, end_offset=341)]
    """
    sound: list[Headers] = []
    is_cleaned = False
    missing = OffsetSet([], [])
    with segment_file(segment, faults, strict=False) as file:
        scan = HeaderScan(file, check_crc=check_crc)
        for headers in scanned(segment, scan, faults):
            is_sound = headers["crc_ok"] != 0
            is_cleaned |= bool((is_sound & lacks_records(headers)).any())
            sound.append(headers[is_sound][["base_offset", "last_offset_delta"]].copy())
        at_end = end_fault(segment, scan, scan.faults, file)
        if at_end is not None:
            faults.append(at_end)
            if at_end.error == MISSING_BATCHES:
                missing = OffsetSet([at_end.base_offset or 0], [segment.end_offset or 0])
    if not sum(map(len, sound)):
        return HeldOffsets(OffsetSet([], []), 0, missing)
    firsts = np.concatenate([headers["base_offset"] for headers in sound])
    ends = np.concatenate([last_offsets(headers) for headers in sound]) + 1
    return HeldOffsets(OffsetSet(firsts, ends), int(ends.max()) if is_cleaned else 0, missing)
