"""Index files of a segment: ``.index``, ``.timeindex`` and ``.txnindex``.

  .index      relative offset int32, position int32       last offset of the batch at that byte of the log file
  .timeindex  timestamp int64, relative offset int32      largest timestamp up to and including that offset
  .txnindex   version int16, producer_id int64, first_offset int64, last_offset int64, last_stable_offset int64

All are big-endian; relative offsets count from the segment's base offset. In an active segment the first two are
preallocated: zeros at the end are not entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault

ENTRY_TYPES = {
    "index": np.dtype([("offset", ">i4"), ("position", ">i4")]),
    "timeindex": np.dtype([("timestamp", ">i8"), ("offset", ">i4")]),
    "txnindex": np.dtype(
        [("version", ">i2"), ("producer_id", ">i8"), ("offset", ">i8"), ("last_offset", ">i8"), ("lso", ">i8")]
    ),
}
PREALLOCATED = ("index", "timeindex")
RELATIVE = ("index", "timeindex")
TXNINDEX_VERSION = 0
FEW_BYTES = 64 << 10  # a file system needs about as long for them as for a few

Entries = npt.NDArray[np.void]
IndexColumns = dict[str, npt.NDArray[Any]]


def read_index(path: LogPath, kind: str, base_offset: int, faults: list[Fault]) -> IndexColumns:
    """Read the entries of an index file.

    Parameters
    ----------
    path : Path or RemotePath
    kind : {"index", "timeindex", "txnindex"}
    base_offset : int
        Base offset of the segment.
    faults : list of Fault
        Receives faults of the file itself: a size that is not a multiple of an entry's, entries that go back, or
        invalid entries.

    Returns
    -------
    dict of str to numpy.ndarray
        Native int64 columns; ``offset`` is absolute.
    """
    data = disk().read_bytes(path)
    entry = ENTRY_TYPES[kind]
    count = len(data) // entry.itemsize
    if len(data) % entry.itemsize:
        faults.append(
            _index_fault(path, count * entry.itemsize, f"{len(data)} bytes are not a multiple of {entry.itemsize}")
        )
    entries = np.frombuffer(data, entry, count)
    if kind in PREALLOCATED:
        used = np.flatnonzero(entries.view(np.uint8).reshape(count, entry.itemsize).any(axis=1))
        entries = entries[: used[-1] + 1 if len(used) else 0]
    columns = {name: entries[name].astype(np.int64) for name in entry.names or ()}
    if kind in RELATIVE:
        columns["offset"] += base_offset
    ordered = {"index": ("offset", "position"), "timeindex": ("offset", "timestamp"), "txnindex": ("last_offset",)}
    back = np.logical_or.reduce([np.diff(columns[name]) < 0 for name in ordered[kind]])
    if back.any():
        at = int(back.argmax()) + 1
        faults.append(_index_fault(path, at * entry.itemsize, f"entry {at} is less than the one before it"))
    odd, what = _odd_entries(columns, kind, base_offset)
    if odd.any():
        at = int(odd.argmax())
        values = ", ".join(f"{name} {column[at]}" for name, column in columns.items())
        faults.append(_index_fault(path, at * entry.itemsize, f"entry {at}: expected {what}, found {values}"))
    return columns


class TimeSpan(NamedTuple):
    """The first and the last entry of a ``.timeindex``."""

    first_offset: int
    first_timestamp: int
    last_offset: int
    last_timestamp: int


def time_span(path: LogPath, base_offset: int) -> TimeSpan | None:
    """Return the first and the last entry of a ``.timeindex``, without reading all of a large one.

    None if it is empty, or not one that a broker closed: entries in part, zeros, or entries that go back.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    entry = ENTRY_TYPES["timeindex"]
    file = disk().open(path)
    try:
        size = file.size
        if not size or size % entry.itemsize:
            return None
        ends = [(0, size)] if size <= FEW_BYTES else [(0, entry.itemsize), (size - entry.itemsize, size)]
        entries = np.frombuffer(b"".join(file.read(*each) for each in ends), entry)
    finally:
        file.close()
    (first_timestamp, first), (last_timestamp, last) = entries[0].item(), entries[-1].item()
    is_closed = (last_timestamp, last) != (0, 0)
    if not is_closed or not 0 <= first <= last or first_timestamp > last_timestamp:
        return None
    return TimeSpan(base_offset + first, first_timestamp, base_offset + last, last_timestamp)


def _odd_entries(columns: IndexColumns, kind: str, base_offset: int) -> tuple[npt.NDArray[np.bool_], str]:
    """Return which entries are invalid in any segment, and the expectation."""
    offset = columns["offset"]
    if kind == "index":
        what = f"an offset of {base_offset} or more and a position of 0 or more"
        return (offset < base_offset) | (columns["position"] < 0), what
    if kind == "timeindex":
        return offset < base_offset, f"an offset of {base_offset} or more"
    last = columns["last_offset"]
    is_whole = (columns["version"] == TXNINDEX_VERSION) & (columns["producer_id"] >= 0) & (columns["lso"] >= 0)
    is_within = (offset >= 0) & (offset <= last) & (base_offset <= last) & (columns["lso"] <= last + 1)
    what = f"version {TXNINDEX_VERSION}, a producer, and a transaction that ends at {base_offset} or later"
    return ~(is_whole & is_within), what


def is_sane_txnindex(path: LogPath, base_offset: int) -> bool:
    """Whether a broker that loads a segment accepts its ``.txnindex``, as in ``TransactionIndex.sanityCheck``.

    It does not if a transaction ended before the segment, and then recovers the segment. A truncated entry does not
    count.
    """
    data, entry = disk().read_bytes(path), ENTRY_TYPES["txnindex"]
    entries = np.frombuffer(data, entry, len(data) // entry.itemsize)
    return bool((entries["last_offset"] >= base_offset).all())


def recovery_fault(path: LogPath, kind: str, base_offset: int) -> Fault | None:
    """Return why a starting broker rebuilds an ``.index`` or ``.timeindex``; None if it accepts the file.

    It checks the size and that the last entry, which may be zeros at the end, is not before the first.
    """
    data, entry = disk().read_bytes(path), ENTRY_TYPES[kind]
    count = len(data) // entry.itemsize
    if len(data) % entry.itemsize:
        return _index_fault(path, count * entry.itemsize, f"{len(data)} bytes are not a multiple of {entry.itemsize}")
    entries = np.frombuffer(data, entry, count)
    last_at = (count - 1) * entry.itemsize
    if count and entries["offset"][-1] < 0:
        offset = base_offset + int(entries["offset"][-1])
        return _index_fault(path, last_at, f"offset {offset} is less than the base offset {base_offset}")
    if count and kind == "timeindex" and entries["timestamp"][-1] < entries["timestamp"][0]:
        first, last = int(entries["timestamp"][0]), int(entries["timestamp"][-1])
        return _index_fault(path, last_at, f"the last timestamp {last} is less than the first one, {first}")
    return None


def _index_fault(path: LogPath, position: int, what: str) -> Fault:
    message = f"{path.parent.name}/{path.name}: byte {position}: {what}"
    return Fault("bad_index", message, position, base_offset=None)
