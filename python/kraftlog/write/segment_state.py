"""The state of a segment that a writer needs to append to it, from the headers of its batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends, sound_batches_behind
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.build_index import IndexBuilder
from kraftlog.layout.offset_order import going_back
from kraftlog.types import InputFile


@dataclass
class SegmentState:
    """The sound batches at the start of a segment.

    Attributes
    ----------
    index : IndexBuilder
        Ready for further batches.
    size : int
        Bytes of these batches.
    next_offset : int
        Offset after the last batch.
    last_timestamp : int
        Largest timestamp of the last batch.
    epochs : list of tuple of int
        Leader epochs and the first offset of each.
    fault : Fault or None
        The fault after these batches, if it is damage rather than a torn tail.
    sound_behind : bool
        Whether sound batches follow the damage.
    """

    index: IndexBuilder
    size: int = 0
    next_offset: int = 0
    last_timestamp: int = NO_TIMESTAMP
    epochs: list[tuple[int, int]] = field(default_factory=list)
    fault: Fault | None = None
    sound_behind: bool = False

    def add(self, headers: Headers) -> None:
        """Add further batches of the file."""
        self.index.add(headers)
        self.size = int(ends(headers)[-1])
        self.next_offset = int(last_offsets(headers)[-1]) + 1
        self.last_timestamp = int(headers["max_timestamp"][-1])
        epochs = headers["partition_leader_epoch"]
        last = self.epochs[-1][0] if self.epochs else -1
        if epochs.max() > last:
            for at in np.flatnonzero(np.diff(epochs, prepend=last)).tolist():
                if epochs[at] > last:
                    last = int(epochs[at])
                    self.epochs.append((last, int(headers["base_offset"][at])))


def empty_segment(base_offset: int, index_interval_bytes: int) -> SegmentState:
    """Return the state of a segment without batches."""
    return SegmentState(IndexBuilder(base_offset, index_interval_bytes), next_offset=base_offset)


def read_segment(
    path: Path,
    base_offset: int,
    index_interval_bytes: int,
    *,
    on_headers: Callable[[Headers], None] | None = None,
    sound_before: int = 0,
) -> SegmentState:
    """Check each batch of a log file, up to the first damaged one.

    Parameters
    ----------
    path : Path
    base_offset : int
        Base offset of the segment.
    index_interval_bytes : int
    on_headers : callable, optional
        Called with the headers of the sound batches.
    sound_before : int
        Batches before this offset are already checked.
    """
    state = empty_segment(base_offset, index_interval_bytes)

    def take(headers: Headers) -> None:
        if len(headers):
            state.add(headers)
            if on_headers is not None:
                on_headers(headers)

    file = disk().open(path)
    if sound_before > base_offset:
        _take_before(file, sound_before, take)
    scan = HeaderScan(file, state.size, check_crc=True)
    for headers in scan.headers():
        if state.fault is None:
            faults = [*scan.faults[:1], *islice(going_back(headers, state.next_offset), 1)]
            state.fault = min(faults, key=lambda fault: fault.position or 0, default=None)
        if state.fault is not None:
            damaged_at = state.fault.position or 0
            state.sound_behind |= bool(((headers["position"] > damaged_at) & (headers["crc_ok"] == 1)).any())
            headers = headers[headers["position"] < damaged_at]
        take(headers)
    if state.fault is None and scan.faults:
        state.fault = scan.faults[0]
    if scan.gave_up_at >= 0:
        state.sound_behind |= sound_batches_behind(file, scan.gave_up_at) > 0
    return state


def _take_before(file: InputFile, offset: int, take: Callable[[Headers], None]) -> None:
    for headers in HeaderScan(file).headers():
        before = headers["base_offset"] < offset
        take(headers if before.all() else headers[: int(np.argmin(before))])
        if not before.all():
            return
