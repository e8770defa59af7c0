"""The last segment of a log, open for appends."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.writing import WritableFile
from kraftlog.write.log_files import segment_file
from kraftlog.write.segment_state import SegmentState


class ActiveSegment:
    """A segment that grows.

    Parameters
    ----------
    folder : Path
        Folder of the partition.
    base_offset : int
    state : SegmentState
        State of its content, kept up to date.
    txnindex : bytes
        Entries of its ``.txnindex``.
    """

    def __init__(self, folder: Path, base_offset: int, state: SegmentState, txnindex: bytes = b"") -> None:
        self.base_offset = base_offset
        self.state = state
        self.txnindex = txnindex
        self._folder = folder
        self._file: WritableFile | None = None
        self._is_open = False
        self._held: WritableFile | None = None
        self._is_closing = False

    @property
    def is_open(self) -> bool:
        """Whether it is open for writing; its log file exists."""
        return self._is_open

    def open(self) -> None:
        """Open the log file, also after ``rest``; a missing file is made, and its name synced to disk."""
        if self._file is not None:
            return
        path = segment_file(self._folder, self.base_offset)
        is_new = disk().entry(path) is None
        self._file = disk().open_append(path)
        self._is_open = True
        if is_new:
            disk().sync_folder(self._folder)

    def write(self, view: memoryview, headers: Headers) -> None:
        """Write consecutive batches from a buffer."""
        assert self._file is not None
        begin, end = int(headers["position"][0]), int(ends(headers)[-1])
        self._file.append(view[begin:end])
        placed = headers.copy()
        placed["position"] += self.state.size - begin
        self.state.add(placed)

    def sync(self) -> None:
        """Wait until all of it is on disk."""
        if self._is_open:
            self.open()
        if self._file is not None:
            self._file.sync()

    def hold(self) -> WritableFile | None:
        """Return the log file, which stays open until ``release``, for another thread to sync."""
        if self._is_open:
            self.open()
        self._held = self._file
        return self._file

    def release(self) -> None:
        """Close the held file, if a close was requested since."""
        held, self._held = self._held, None
        if self._is_closing and held is not None:
            held.close()

    def rest(self) -> None:
        """Close the log file until its next use, unless it is held."""
        if self._held is None and self._file is not None:
            self._file.close()
            self._file = None

    def index_files(self) -> dict[Path, bytes]:
        """Return the index files of its content, without a ``.txnindex`` that would be new and empty."""
        return index_files(self._folder, self.base_offset, self.state, self.txnindex)

    def close(self) -> None:
        """Close the log file; a second call does nothing."""
        self._is_open = False
        if self._file is not None and self._file is self._held:
            self._file, self._is_closing = None, True
        elif self._file is not None:
            self._file.close()
            self._file = None


def fitting(headers: Headers, *, size: int, most_bytes: int, base_offset: int, most_offsets: int) -> int:
    """Return how many of the next batches fit a segment; an empty one takes any batch.

    Parameters
    ----------
    headers : structured array of HEADER_DTYPE
        Headers of the next batches, at least one.
    size, most_bytes : int
        Bytes of the segment, and their maximum.
    base_offset, most_offsets : int
        Base offset of the segment, and the maximum distance of a batch's last offset from it.
    """
    sizes, relative = ends(headers) - headers["position"][0], last_offsets(headers) - base_offset
    if size + sizes[-1] <= most_bytes and relative[-1] <= most_offsets:
        return len(headers)
    fits = size + sizes <= most_bytes
    fits[0] |= size == 0
    fits &= relative <= most_offsets
    return len(fits) if fits.all() else int(np.argmin(fits))


def index_files(folder: Path, base_offset: int, state: SegmentState, txnindex: bytes) -> dict[Path, bytes]:
    """Return the index files of a segment, without a ``.txnindex`` that would be new and empty."""
    files = {
        segment_file(folder, base_offset, "index"): state.index.index(),
        segment_file(folder, base_offset, "timeindex"): state.index.timeindex(),
    }
    path = segment_file(folder, base_offset, "txnindex")
    if txnindex or disk().entry(path) is not None:
        files[path] = txnindex
    return files
