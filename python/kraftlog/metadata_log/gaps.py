"""Offsets that are missing in a metadata log, and the transactions that are not whole because of it.

The offsets of a Raft log have no gaps: one is a segment that is gone, or a batch that cannot be read. What is left of a
transaction around a gap must not be taken for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.codec.options import NO_BOUND
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.metadata_log.files import SNAPSHOT, MetadataLog
from kraftlog.read.metadata_boundaries import scan_boundaries
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.records import located
from kraftlog.transactions.producer import OPEN

MISSING, DAMAGED, UNFINISHED = "missing_offsets", "damaged_transaction", "incomplete_snapshot"


@dataclass(frozen=True)
class Gaps:
    """What is known of the gaps of a log.

    Attributes
    ----------
    left_out : list of tuple of int
        First and last offset of each stretch whose records belong to a transaction that is not whole.
    faults : list of Fault
    """

    left_out: list[tuple[int, int]]
    faults: list[Fault]

    def hides(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which records are left out."""
        hidden = np.zeros(len(offsets), bool)
        for first, last in self.left_out:
            hidden |= (offsets >= first) & (offsets <= last)
        return hidden


def incomplete_faults(segments: Iterable[Segment]) -> Iterator[Fault]:
    """Return what is missing in the metadata logs, and in the snapshots of them, among some segments."""
    for group in by_partition(segments):
        if group[0].state in ("", SNAPSHOT) and is_metadata(group[0]):
            log = MetadataLog(group)
            yield from unfinished(log) if log.is_snapshot else find_gaps(log, log.start_offset, NO_BOUND).faults


def unfinished(log: MetadataLog) -> list[Fault]:
    """Return a fault for a snapshot that does not begin with its header and end with its footer."""
    types = log.headers["control_type"]
    first, last = (CONTROL_TYPES.index(name) for name in ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"))
    if len(types) and types[0] == first and types[-1] == last:
        return []
    message = "it does not begin with a snapshot's header and end with its footer: a part is missing"
    return [located(log.segments[0], Fault(UNFINISHED, message))]


def find_gaps(log: MetadataLog, start: int, end: int) -> Gaps:
    """Find the gaps of a log in the offsets [start, end)."""
    gaps = _gaps(log, start, end)
    if not gaps:
        return Gaps([], [])
    faults = [
        located(log.segment_of(after), Fault(MISSING, f"offsets {first} to {after - 1} are missing"))
        for first, after in gaps
    ]
    left_out = sorted(set(_broken(log, gaps)))
    for first, last in left_out:
        message = f"offsets {first} to {last} are of a transaction that is not whole: they are left out"
        faults.append(located(log.segment_of(first), Fault(DAMAGED, message)))
    return Gaps(left_out, faults)


def _gaps(log: MetadataLog, start: int, end: int) -> list[tuple[int, int]]:
    """Return the first missing offset of each gap, and the one behind it."""
    base, last = log.headers["base_offset"], log.last_offsets
    within = (last >= start) & (base < end)
    base, last = base[within], last[within]
    if not len(base):
        return []
    expected = np.concatenate(([start], np.maximum.accumulate(last[:-1]) + 1))
    at = np.flatnonzero(base > expected)
    return list(zip(expected[at].tolist(), base[at].tolist(), strict=True))


def _broken(log: MetadataLog, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    scanned = list(scan_boundaries(log.segments, []))
    ended = [
        (begin, end)
        for part in scanned
        for begin, end, state in zip(
            *(part.transactions[name].tolist() for name in ("begin_offset", "end_offset", "state")), strict=True
        )
        if state != OPEN
    ]
    illegal = sorted(offset for part in scanned for offset in part.illegal.tolist())
    markers = sorted(offset for span in ended for offset in span)
    found = [span for span in ended for first, after in gaps if span[0] < first and after <= span[1]]
    for _, after in gaps:  # an End or Abort whose Begin is missing
        lone = next((offset for offset in illegal if offset >= after), None)
        if lone is not None and not any(after <= marker < lone for marker in markers):
            found.append((after, lone))
    return found
