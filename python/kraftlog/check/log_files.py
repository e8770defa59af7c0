"""Checks beyond what reading needs: offsets that go back, and index entries that do not match the log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.layout.index_files import read_index
from kraftlog.read.ranges import Range
from kraftlog.read.records import Progress, located, open_segment, read_range
from kraftlog.schema import RECORDS


def check_segments(
    segments: list[Segment], options: ReadOptions, on_progress: Progress | None = None
) -> Iterator[Fault]:
    """Read everything, compare it with the index files, and return what does not hold, in the order of the files."""
    previous: Segment | None = None
    expected = None
    for segment in segments:
        faults: list[Fault] = []
        for _ in read_range(Range(segment, 0, 2**63 - 1), RECORDS.select([]), options, faults, on_progress):
            pass
        yield from faults
        buffer = open_segment(segment, [], strict=False)
        parts = list(HeaderScan(buffer).headers())
        headers = np.concatenate(parts) if parts else None
        continues = previous is not None and previous.path.parent == segment.path.parent
        expected = expected if continues else None
        if headers is not None:
            yield from (located(segment, fault) for fault in _offset_faults(segment, headers, expected))
            expected = int(last_offsets(headers).max()) + 1
        yield from (located(segment, fault) for fault in _index_faults(segment, headers))
        previous = segment


def _offset_faults(segment: Segment, headers: Headers, expected: int | None) -> Iterator[Fault]:
    """Offsets rise from batch to batch, and from segment to segment; gaps are what compaction leaves."""
    base, last = headers["base_offset"].astype(np.int64), last_offsets(headers)
    wrapper = headers["magic"] < 2  # its offset is that of its last message
    floor = np.concatenate(([expected if expected is not None else np.iinfo(np.int64).min], last[:-1] + 1))
    for at in np.flatnonzero(np.where(wrapper, last, base) < floor):
        yield Fault(
            "offset_goes_back",
            f"batch at byte {headers['position'][at]}: base_offset {base[at]}, but {floor[at]} or more was expected",
            int(headers["position"][at]),
            base_offset=int(base[at]),
        )
    for at in np.flatnonzero(last < base):
        yield Fault(
            "bad_last_offset_delta",
            f"batch at byte {headers['position'][at]}: last_offset_delta {last[at] - base[at]} is negative",
            int(headers["position"][at]),
            base_offset=int(base[at]),
        )
    if segment.base_offset is not None and not segment.state and base[0] < segment.base_offset and not wrapper[0]:
        yield Fault(
            "offset_goes_back",
            f"batch at byte 0: base_offset {base[0]} is less than the file name's {segment.base_offset}",
            0,
            base_offset=int(base[0]),
        )


def _index_faults(segment: Segment, headers: Headers | None) -> Iterator[Fault]:
    for kind in ("index", "timeindex"):
        path = segment.beside.get(kind)
        if path is None or segment.base_offset is None:
            continue
        faults: list[Fault] = []
        try:
            entries = read_index(path, kind, segment.base_offset, faults)
        except OSError as error:
            yield Fault("unreadable_file", f"{path.name}: {error.strerror}")
            continue
        yield from faults
        check = _offset_entries if kind == "index" else _time_entries
        for entry, what in check(entries, headers):
            yield Fault("index_mismatch", f"{path.name}: entry {entry}: {what}")


def _offset_entries(entries: dict[str, np.ndarray], headers: Headers | None) -> Iterator[tuple[int, str]]:
    """Each entry names a byte where a batch starts that holds its offset."""
    positions = headers["position"] if headers is not None else np.empty(0, np.int64)
    for entry, (offset, position) in enumerate(zip(entries["offset"], entries["position"], strict=True)):
        at = int(np.searchsorted(positions, position))
        if at == len(positions) or positions[at] != position:
            yield entry, f"offset {offset} at byte {position}, but no batch starts there"
        elif headers is not None and not headers["base_offset"][at] <= offset <= last_offsets(headers[at : at + 1])[0]:
            first, last = headers["base_offset"][at], last_offsets(headers[at : at + 1])[0]
            yield entry, f"offset {offset} at byte {position}, but the batch there holds {first} to {last}"


def _time_entries(entries: dict[str, np.ndarray], headers: Headers | None) -> Iterator[tuple[int, str]]:
    """No batch up to an entry's offset is later than its timestamp, and some batch has just that timestamp."""
    count = 0 if headers is None else len(headers)
    last = last_offsets(headers) if headers is not None else np.empty(0, np.int64)
    ordered = np.maximum.accumulate(last) if count else last
    largest = np.maximum.accumulate(headers["max_timestamp"]) if headers is not None else last
    for entry, (stamp, offset) in enumerate(zip(entries["timestamp"], entries["offset"], strict=True)):
        at = int(np.searchsorted(ordered, offset))
        if at == count:
            if stamp != -1:
                yield entry, f"offset {offset} is behind the end of the log"
        elif at and largest[at - 1] > stamp:
            yield entry, f"timestamp {stamp} up to offset {offset}, but the log holds {largest[at - 1]} before it"
