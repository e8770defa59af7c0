"""Index files of a segment: ``.index``, ``.timeindex`` and ``.txnindex``.

  .index      relative offset int32, position int32       last offset of the batch at that byte of the log file
  .timeindex  timestamp int64, relative offset int32      largest timestamp up to and including that offset
  .txnindex   version int16, producer_id int64, first_offset int64, last_offset int64, last_stable_offset int64

All are big-endian; relative offsets count from the segment's base offset. Of an active segment the first two are
preallocated: zeros at the end are no entries.
"""

from __future__ import annotations

from typing import Any

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

Entries = npt.NDArray[np.void]
IndexColumns = dict[str, npt.NDArray[Any]]


def read_index(path: LogPath, kind: str, base_offset: int, faults: list[Fault]) -> IndexColumns:
    """Read the entries of an index file.

    Parameters
    ----------
    path : Path or RemotePath
    kind : {"index", "timeindex", "txnindex"}
    base_offset : int
        Of the segment.
    faults : list of Fault
        Receives what is wrong with the file itself: a size that is no multiple of an entry's, entries that go back.

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
        ordered_by = "position" if kind == "index" else "timestamp"
        back = np.flatnonzero((np.diff(columns["offset"]) < 0) | (np.diff(columns[ordered_by]) < 0))
        if len(back):
            at = int(back[0]) + 1
            faults.append(_index_fault(path, at * entry.itemsize, f"entry {at} is less than the one before it"))
    return columns


def recovery_fault(path: LogPath, kind: str, base_offset: int) -> Fault | None:
    """Return why a broker that starts makes an ``.index`` or ``.timeindex`` anew; None when it takes it as it is.

    It looks at the size and at the last entry, which must not be before the first; zeros at the end count.
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
