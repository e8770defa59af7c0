"""The ``index.interval.bytes`` of index files, inferred from their entries."""

from __future__ import annotations

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, batch_with
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES, IndexBuilder
from kraftlog.layout.index_files import read_index
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import as_listed


def shown_interval(segments: list[Segment]) -> int:
    """Return an interval that produces the entries of the ``.index`` files of a partition.

    An entry is written after more bytes than the interval: the interval is less than the smallest distance of two
    entries. Kafka's default is tried first, then powers of two, as people usually set it. Files with an entry that does
    not point to its batch are ignored. The default is returned if no file has an entry.
    """
    distances = [(distance, segment) for segment in segments if (distance := _least_distance(segment))]
    if not distances:
        return INDEX_INTERVAL_BYTES
    least, segment = min(distances, key=lambda pair: pair[0])
    most = least - 1
    for interval in (INDEX_INTERVAL_BYTES, 1 << (most.bit_length() - 1)):
        if interval <= most and _gives(segment, interval):
            return interval
    return most


def _gives(segment: Segment, interval: int) -> bool:
    """Whether a segment's ``.index`` matches an interval."""
    builder = IndexBuilder(segment.base_offset or 0, interval)
    try:
        with as_listed(segment) as file:
            for headers in HeaderScan(file).headers():
                builder.add(headers)
        expected, content = builder.index(), disk().read_bytes(segment.beside["index"])
    except (OSError, ValueError):  # it cannot be read, or has damaged offsets, which no index can hold
        return False
    return content.startswith(expected) and not content[len(expected) :].strip(b"\0")  # zeros: preallocated


def _least_distance(segment: Segment) -> int | None:
    path = segment.beside.get("index")
    if path is None or segment.base_offset is None:
        return None
    faults: list[Fault] = []
    try:
        entries = read_index(path, "index", segment.base_offset, faults)
        return None if faults else _if_all_are_there(segment, entries["position"], entries["offset"])
    except OSError:
        return None


def _if_all_are_there(segment: Segment, positions: np.ndarray, offsets: np.ndarray) -> int | None:
    distances = np.diff(positions, prepend=0)
    if not len(positions) or distances.min() <= 0:
        return None
    with as_listed(segment) as file:
        pairs = zip(positions.tolist(), offsets.tolist(), strict=True)
        return int(distances.min()) if all(batch_with(file, *pair) is not None for pair in pairs) else None
