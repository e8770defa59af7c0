"""The state in which a writer finds the last segment of a log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.disk.mapping import map_file
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import IndexBuilder


@dataclass
class SegmentState:
    """What the batches of a segment come to, as far as they are sound.

    Attributes
    ----------
    index : IndexBuilder
        Ready for further batches.
    size : int
        Bytes of whole, sound batches.
    next_offset : int
        Behind the last of them.
    last_timestamp : int
        The largest of the last batch.
    epochs : list of tuple of int
        Epochs of leaders and the first offset of each.
    """

    index: IndexBuilder
    size: int = 0
    next_offset: int = 0
    last_timestamp: int = NO_TIMESTAMP
    epochs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, headers: Headers) -> None:
        """Take further batches of the file."""
        self.index.add(headers)
        self.size = int(ends(headers)[-1])
        self.next_offset = int(last_offsets(headers)[-1]) + 1
        self.last_timestamp = int(headers["max_timestamp"][-1])
        epochs = headers["partition_leader_epoch"]
        before = self.epochs[-1][0] if self.epochs else -1
        for at in np.flatnonzero(np.diff(epochs, prepend=before)).tolist():
            if not self.epochs or epochs[at] > self.epochs[-1][0]:
                self.epochs.append((int(epochs[at]), int(headers["base_offset"][at])))


def empty_segment(base_offset: int, index_interval_bytes: int) -> SegmentState:
    """Return the state of a segment without batches."""
    return SegmentState(IndexBuilder(base_offset, index_interval_bytes), next_offset=base_offset)


def read_segment(path: Path, base_offset: int, index_interval_bytes: int) -> SegmentState:
    """Check each batch of a log file, up to the first that is not sound.

    Raises
    ------
    CorruptRecordError
        When there are sound batches behind damage: then more is wrong than an unclean shutdown explains.
    """
    state = empty_segment(base_offset, index_interval_bytes)
    scan = HeaderScan(map_file(path), check_crc=True)
    for headers in scan.headers():
        if scan.faults:
            damaged_at = scan.faults[0].position or 0
            if ((headers["position"] > damaged_at) & (headers["crc_ok"] == 1)).any():
                fault = scan.faults[0].located(f"{path.parent.name}/{path.name}", None, None, base_offset)
                message = f"{fault.message}; there are sound batches behind it: see `kraftlog recover`"
                raise CorruptRecordError(message, fault)
            headers = headers[headers["position"] < damaged_at]
        if len(headers):
            state.add(headers)
    return state
