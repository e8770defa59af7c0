"""The end of a log that was closed cleanly: from the last segment's index files, as in a broker.

A log that was closed has a ``.snapshot`` at its end, index files that end with it, and a recovery point there. So only
the batches after the last index entry need to be read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES, IndexBuilder
from kraftlog.layout.index_files import ENTRY_TYPES, Entries
from kraftlog.layout.leader_epochs import LeaderEpochs
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.write.log_end import CheckedSegment, LogEnd
from kraftlog.write.log_files import segment_file
from kraftlog.write.producers import ScannedProducers
from kraftlog.write.segment_state import SegmentState
from kraftlog.write.transaction_index import kept_txnindex


def clean_log_end(folder: Path, recovery_point: int | None) -> LogEnd | None:
    """Return the end of a log from its index files and snapshot; None if they do not show a clean close.

    Parameters
    ----------
    folder : Path
        Folder of a partition, in a log directory that was closed cleanly.
    recovery_point : int or None
        The offset up to which everything is known to be on disk.
    """
    if recovery_point is None or disk().entry(folder) is None:
        return None
    listed = PartitionFolder.of(folder)
    if not listed.segments:
        return None
    segment, snapshots = listed.segments[-1], sorted(listed.producer_snapshots)
    state = _state(segment)
    if state is None or state.next_offset != recovery_point:
        return None
    epochs = LeaderEpochs(folder, recovery_point + 1, ())
    try:
        states = read_producer_snapshot(segment_file(folder, recovery_point, "snapshot")) if recovery_point else []
    except (OSError, CorruptRecordError):
        return None
    if recovery_point and not epochs.is_in_file:
        return None
    scanned = ScannedProducers(states)
    base_offset = segment.base_offset or 0
    txnindex = kept_txnindex(segment_file(folder, base_offset, "txnindex"), b"", recovery_point)
    return LogEnd(
        folder,
        listed.segments,
        [CheckedSegment(base_offset, state, txnindex, b"")],
        [],
        snapshots,
        0,
        state.index.interval_bytes,
        epochs,
        scanned.producers,
        scanned.last_batches,
        is_closed=True,
    )


def _state(segment: Segment) -> SegmentState | None:
    """Return the state of the last segment; None if its index files do not match."""
    base_offset, size = segment.base_offset or 0, segment.size
    index, timeindex = (_entries(segment, kind) for kind in ("index", "timeindex"))
    if index is None or timeindex is None:
        return None
    last_entry = int(index["position"][-1]) if len(index) else 0
    tail = _tail(segment, last_entry) if size else None
    builder = IndexBuilder.resumed(base_offset, _interval(index), index, timeindex, size - last_entry)
    if tail is None:
        return SegmentState(builder, next_offset=base_offset) if not size and not len(index) else None
    if len(index) and last_offsets(tail)[0] != base_offset + int(index["offset"][-1]):
        return None
    return SegmentState(builder, size, int(last_offsets(tail)[-1]) + 1, int(tail["max_timestamp"][-1]))


def _entries(segment: Segment, kind: str) -> Entries | None:
    path = segment_file(segment.local_path.parent, segment.base_offset or 0, kind)
    if disk().entry(path) is None:
        return None
    data = disk().read_bytes(path)
    return None if len(data) % ENTRY_TYPES[kind].itemsize else np.frombuffer(data, ENTRY_TYPES[kind])


def _tail(segment: Segment, position: int) -> Headers | None:
    """Return the headers from a batch on; None unless all are whole up to the end of the file."""
    scan = HeaderScan(disk().open(segment.local_path), position)
    blocks = list(scan.headers())
    if scan.faults or scan.torn_at >= 0 or not blocks:
        return None
    return np.concatenate(blocks)


def _interval(index: Entries) -> int:
    """Return an ``index.interval.bytes`` that the distances of the entries allow, Kafka's default if that is one."""
    least = int(np.diff(index["position"]).min(initial=INDEX_INTERVAL_BYTES + 1))
    return INDEX_INTERVAL_BYTES if least > INDEX_INTERVAL_BYTES else max(1, 1 << ((least - 1).bit_length() - 1))
