"""Appends batches to the segments of one partition: rolling, index files, and what to do when a write fails."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.durable import cut_file, sync_folder, write_file
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.small_files import producer_snapshot_bytes
from kraftlog.types import Buffer
from kraftlog.write.segment_tail import SegmentState, empty_segment

FSYNC = ("commit", "batch", "close")


class LogAppender:
    """The end of a log, open for writing. The caller holds the lock.

    Parameters
    ----------
    folder : Path
        Of the partition.
    base_offset : int
        Of the last segment, which is made when there is none.
    state : SegmentState
        Of the last segment. What lies behind its sound batches is cut off, as Kafka does, and its indexes are rebuilt.
    segment_bytes, index_interval_bytes : int
        Kafka's ``segment.bytes`` and ``index.interval.bytes``.
    fsync : {"commit", "batch", "close"}
        When to wait for the disk: at each commit, behind each batch as well, or only when a segment is closed.

    Attributes
    ----------
    state : SegmentState
        Of the last segment, as it grows.
    failure : BaseException or None
        Why nothing more is written.
    """

    def __init__(
        self,
        folder: Path,
        base_offset: int,
        state: SegmentState,
        *,
        segment_bytes: int,
        index_interval_bytes: int,
        fsync: str,
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._index_interval_bytes = index_interval_bytes
        self._fsync = fsync
        self.failure: BaseException | None = None
        self.state = state
        self._base_offset = base_offset
        log = self._path("log")
        if not log.exists():
            self._fd = self._start_segment(base_offset)
            return
        if state.size < log.stat().st_size:
            cut_file(log, state.size)
        self._write_indexes()
        self._fd = _open(log)

    @property
    def next_offset(self) -> int:
        """Of the record that is appended next."""
        return self.state.next_offset

    @property
    def last_timestamp(self) -> int:
        """The largest of the last batch."""
        return self.state.last_timestamp

    def append(self, batches: Buffer, *, commit: bool) -> None:
        """Append whole batches; ``commit`` says that the caller relies on them from now on.

        Raises
        ------
        OSError
            When a write fails. The file is then cut back to where it was, and nothing more is written.
        """
        self.check()
        view = memoryview(batches).cast("B")
        start = self.state.size
        try:
            for headers in HeaderScan(view).headers() if len(view) else ():
                while len(headers):
                    fitting = self._fitting(headers)
                    if fitting:
                        self._append(view, headers[:fitting])
                        headers = headers[fitting:]
                    else:
                        self._roll()
                        start = 0
            if commit and self._fsync == "commit":
                os.fsync(self._fd)
        except BaseException as error:
            self._fail(error, start)
            raise

    def check(self) -> None:
        """Raise when an earlier write failed."""
        if self.failure is not None:
            raise OSError(f"{self._folder}: an earlier write failed ({self.failure}); open the log again")

    def close(self) -> None:
        """Complete the index files; after a failure they are left to whoever opens the log next."""
        try:
            if self.failure is None:
                os.fsync(self._fd)
                self._write_indexes()
        finally:
            os.close(self._fd)

    def _fitting(self, headers: Headers) -> int:
        """Return how many of the next batches go to the segment as it is."""
        sizes = ends(headers) - headers["position"][0]
        fits = sizes <= self._segment_bytes - self.state.size
        fits &= last_offsets(headers) - self._base_offset <= LARGEST_RELATIVE_OFFSET
        if self._fsync == "batch":
            fits[1:] = False
        return len(fits) if fits.all() else int(np.argmin(fits))

    def _append(self, view: memoryview, headers: Headers) -> None:
        begin, end = int(headers["position"][0]), int(ends(headers)[-1])
        data = view[begin:end]
        while data:
            data = data[os.write(self._fd, data) :]
        if self._fsync == "batch":
            os.fsync(self._fd)
        placed = headers.copy()
        placed["position"] += self.state.size - begin
        self.state.add(placed)

    def _fail(self, error: BaseException, size: int) -> None:
        self.failure = error
        note = f"{self._path('log')} was cut back to {size} bytes, and nothing more is written to it"
        try:
            os.ftruncate(self._fd, size)
            os.fsync(self._fd)
        except OSError as other:
            note = f"{self._path('log')} could not be cut back to {size} bytes: {other}"
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{error.strerror}; {note}") from error

    def _roll(self) -> None:
        os.fsync(self._fd)
        self._write_indexes()
        full = self._fd
        self._fd = self._start_segment(self.next_offset)
        os.close(full)

    def _start_segment(self, base_offset: int) -> int:
        self._base_offset = base_offset
        if base_offset:
            write_file(self._path("snapshot"), producer_snapshot_bytes(()))  # the metadata log has no producers
        fd = _open(self._path("log"))
        sync_folder(self._folder)
        self.state = replace(empty_segment(base_offset, self._index_interval_bytes), last_timestamp=self.last_timestamp)
        return fd

    def _write_indexes(self) -> None:
        for kind, data in (("index", self.state.index.index()), ("timeindex", self.state.index.timeindex())):
            path = self._path(kind)
            if not path.exists() or path.read_bytes() != data:
                write_file(path, data)

    def _path(self, kind: str) -> Path:
        return self._folder / f"{self._base_offset:020d}.{kind}"


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
