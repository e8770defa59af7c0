"""The control records that say who the voters of a dynamic quorum are: a controller needs them to start."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.decode import decode
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.options import NO_BOUND
from kraftlog.layout.discover import Segment
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.read.records import open_segment

QUORUM_TYPES = ("KRAFT_VERSION", "KRAFT_VOTERS")

QuorumRecords = tuple[tuple[str, bytes], ...]


def quorum_records(log: MetadataLog, end: int) -> QuorumRecords:
    """Return the last record of each of ``QUORUM_TYPES`` before an offset: its type and its value.

    There is none where the voters stand in the nodes' configuration. What cannot be read is passed over.
    """
    if log.is_snapshot:
        found = dict(_of(log.segments[0], NO_BOUND))
    else:
        before = [snapshot.segment for snapshot in log.snapshots if snapshot.end_offset <= end]
        found = dict(_of(before[0], NO_BOUND)) if before else {}
        for segment in log.segments:  # from before the snapshot there may be some as well; the last ones are the same
            found.update(_of(segment, end))
    return tuple((name, found[name]) for name in QUORUM_TYPES if name in found)


def _of(segment: Segment, end: int) -> Iterator[tuple[str, bytes]]:
    file = open_segment(segment, [], strict=False)
    for headers in HeaderScan(file).headers():
        control = headers[(headers["attributes"] & CONTROL_BIT != 0) & (headers["base_offset"] < end)]
        for start, stop in zip(control["position"].tolist(), ends(control).tolist(), strict=True):
            records = decode(file.read(start, stop), columns=["offset", "control_type", "value"], include_control=True)
            for row in records.to_table().to_pylist():
                if row["control_type"] in QUORUM_TYPES and row["offset"] < end:
                    yield row["control_type"], row["value"]
