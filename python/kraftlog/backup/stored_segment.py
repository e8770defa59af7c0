"""The bytes of a segment as objects of a repository: whole batches whose checksums match."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kraftlog._native.checksum import crc32c
from kraftlog._native.scanner import CONTROL_BIT, header_at
from kraftlog.backup.backup_folder import PARTITIONS, Temporary, Writer
from kraftlog.codec.compression import decompressor
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.errors import Fault, InputError
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_end import end_fault
from kraftlog.read.segment_reader import located
from kraftlog.types import Buffer
from kraftlog.write.excluded_records import NOT_EXTRACTED, IsExcluded, batch_of_records, excluded_records

WINDOW_BYTES = 1 << 20  # stays in a cache while it is summed and written
HEADERS_AT_ONCE = 1 << 12
CHANGED = -1  # instead of positions of an object with other bytes than the source: no later backup builds on it
_OF_SOURCE = ("source_position", "last_batch_position", "last_batch_offset", "last_batch_crc")

Object = dict[str, Any]
"""A row of ``kraftlog.disk.backup_files.OBJECT``."""


@dataclass
class StoredSegment:
    """The objects of a segment.

    Attributes
    ----------
    objects : list of dict
        In the order of their bytes.
    stored_size : int
        Bytes of the objects that were added to the repository.
    torn_bytes : int
        Bytes after the last whole batch of a live log.
    excluded_records : int
        Records that are left out for their keys.
    faults : list of Fault
    """

    objects: list[Object] = field(default_factory=list)
    stored_size: int = 0
    torn_bytes: int = 0
    excluded_records: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(one["size"] for one in self.objects)

    @property
    def gaps(self) -> list[dict[str, int]]:
        """Offsets between objects, which are damaged in the source."""
        pairs = zip(self.objects, self.objects[1:], strict=False)
        found = [(one["next_offset"], after["base_offset"]) for one, after in pairs]
        return [{"start_offset": start, "end_offset": end} for start, end in found if start < end]


class SegmentStore:
    """Stores segments of one partition.

    Parameters
    ----------
    writer : Writer
    folder : str
        Name of the partition's folder in the repository.
    known : set of str
        Objects of listed backups, which are not written again.
    links : bool
        Whether to store closed segments as hard links, where that is possible.
    observe : callable
        Called with each segment and the headers of its batches that were read.
    on_progress : callable, optional
        Called with numbers of bytes that were read.
    is_excluded : callable, optional
        Returns of a column of keys which records are left out. A segment with such records is read again by each
        backup.
    """

    def __init__(
        self,
        writer: Writer,
        folder: str,
        known: set[str],
        *,
        links: bool = False,
        observe: Callable[[Segment, Headers], None] = lambda *_: None,
        on_progress: Callable[[int], None] | None = None,
        is_excluded: IsExcluded | None = None,
    ) -> None:
        self._writer = writer
        self._folder = folder
        self._known = known
        self._links = links and is_excluded is None
        self._is_excluded = is_excluded
        self._decompressor = decompressor(ReadOptions.max_decompressed_bytes)
        self._observe = observe
        self._observes = True
        self._on_progress = on_progress

    def store(
        self, segment: Segment, before: list[Object], on_continued: Callable[[], None] = lambda: None
    ) -> StoredSegment:
        """Store what earlier backups do not have of a segment.

        Parameters
        ----------
        segment : Segment
        before : list of dict
            Objects of the same file in an earlier backup; they are kept if the file still has their last batch.
        on_continued : callable
            Called before later batches are read, if they are kept.
        """
        faults: list[Fault] = []
        size = segment.size
        self._observes = True
        while True:
            stored = StoredSegment(faults=faults)
            try:
                file = disk().open(segment.path, size)
            except OSError as error:
                faults.append(_unreadable(segment, 0, error))
                return stored
            try:
                if before and is_contiguous(before) and _has_last_batch(file, before[-1]):
                    stored.objects += before
                    if self._observes:
                        on_continued()
                return self._store(segment, file, stored)
            except InputError as error:  # what comes before is stored
                faults.append(_unreadable(segment, error.position, error))
                self._observes = False
                size = min(error.position, size - 1)
            finally:
                file.close()

    def _store(self, segment: Segment, file: ReadableFile, stored: StoredSegment) -> StoredSegment:
        start = end_of(stored.objects[-1]) if stored.objects else 0
        scan = HeaderScan(file, start, check_crc=True)
        run: _Run | None = None
        try:
            for headers in scan.headers(HEADERS_AT_ONCE):
                if self._observes:
                    self._observe(segment, headers)
                for sound in _sound_runs(self._possible(segment, headers, stored)):
                    if run is None or run.end != sound["position"][0]:
                        if run is not None:
                            self._finish(segment, file, run, stored)
                        run = self._new_run(int(sound["position"][0]))
                    run.add(sound, self._contents(segment, file, run, run.end, int(ends(sound)[-1]), stored))
                if self._on_progress is not None:
                    self._on_progress(int(ends(headers)[-1] - headers["position"][0]))
            if run is not None:
                self._finish(segment, file, run, stored)
        except BaseException:
            if run is not None and run.temporary is not None:
                run.temporary.drop()
            raise
        if file.size < segment.size:  # the fault of what cannot be read is known
            return stored
        stored.faults += [located(segment, fault) for fault in scan.faults]
        missing = end_fault(segment, scan, scan.faults, file)
        if missing is not None:
            stored.faults.append(missing)
        elif scan.torn_at >= 0:
            stored.torn_bytes = file.size - scan.torn_at
        return stored

    def _new_run(self, start: int) -> _Run:
        return _Run(start, None if self._links else self._writer.temporary(self._folder))

    def _finish(self, segment: Segment, file: ReadableFile, run: _Run, stored: StoredSegment) -> None:
        """Name an object by its content and keep it, unless an earlier backup has it."""
        digest = run.digest.hexdigest()
        name = f"{PARTITIONS}/{self._folder}/{run.base_offset:020d}-{self._writer.name_of(digest)}.log"
        if name in self._known:
            if run.temporary is not None:
                run.temporary.drop()
        elif run.temporary is not None:
            self._writer.keep(run.temporary, name)
            stored.stored_size += run.size
        else:
            self._copy(segment, file, run, name)
            stored.stored_size += run.size
        stored.objects.append(run.object(name, digest))

    def _copy(self, segment: Segment, file: ReadableFile, run: _Run, name: str) -> None:
        """Store an object from a second reading of its bytes, or as a link."""
        is_whole = segment.is_closed and run.start == 0 and run.end == segment.size
        if self._links and is_whole and isinstance(segment.path, Path):
            with suppress(OSError):
                return self._writer.link(segment.path, name)
        return self._writer.put(name, lambda: self._same(segment, file, run))

    def _same(self, segment: Segment, file: ReadableFile, run: _Run) -> Iterator[Buffer]:
        """Return the bytes of a run again.

        Raises
        ------
        InputError
            When they are not the same: the file was changed between both readings.
        """
        crc = 0
        for data in self._contents(segment, file, run, run.start, run.end, StoredSegment()):
            crc = crc32c(data, crc)
            yield data
        if crc != run.crc:
            raise InputError(OSError("the file was changed while it was read"), run.start)

    def _possible(self, segment: Segment, headers: Headers, stored: StoredSegment) -> Headers:
        """Return batches without those from which no record could be left out."""
        is_old = (headers["magic"] != 2) & (headers["crc_ok"] == 1)
        if self._is_excluded is None or not is_old.any():
            return headers
        for header, stop in zip(headers[is_old], ends(headers[is_old]).tolist(), strict=True):
            message = f"expected magic 2, since keys are excluded, found magic {header['magic']}, which is not stored"
            position = int(header["position"])
            fault = Fault(NOT_EXTRACTED, message, position, stop - position, int(header["base_offset"]))
            stored.faults.append(located(segment, fault))
        possible = headers.copy()
        possible["crc_ok"][is_old] = 0
        return possible

    def _contents(
        self, segment: Segment, file: ReadableFile, run: _Run, start: int, end: int, stored: StoredSegment
    ) -> Iterator[Buffer]:
        """Return the bytes of batches of a run as they are stored.

        Raises
        ------
        InputError
            When they cannot be read.
        """
        if self._is_excluded is None:
            yield from windows(file, start, end)
            return
        for headers in HeaderScan(file, start, end).headers(HEADERS_AT_ONCE):
            for header, stop in zip(headers, ends(headers).tolist(), strict=True):
                position = int(header["position"])
                batch = b"".join(windows(file, position, stop))
                if header["attributes"] & CONTROL_BIT or not header["records_count"]:
                    yield batch
                    continue
                leaves_out = excluded_records(batch, self._is_excluded, ReadOptions.max_decompressed_bytes)
                if len(leaves_out) != header["records_count"]:  # a key that cannot be read may be an excluded one
                    message = f"{len(leaves_out)} of {header['records_count']} records can be read: it is left out"
                    fault = Fault("bad_records_count", message, position, len(batch), int(header["base_offset"]))
                    stored.faults.append(located(segment, fault))
                    leaves_out = np.ones(int(header["records_count"]), bool)
                elif leaves_out.any():
                    stored.excluded_records += int(leaves_out.sum())
                if leaves_out.any():
                    batch = batch_of_records(batch, header, ~leaves_out, self._decompressor)
                    run.is_changed = True
                yield batch


class _Run:
    """Contiguous batches that become one object.

    Parameters
    ----------
    start : int
        Position of the first one in the file.
    temporary : Temporary, optional
        Receives the bytes; without it they are only read.
    """

    def __init__(self, start: int, temporary: Temporary | None) -> None:
        self.start = self.end = start
        self.size = 0
        self.is_changed = False
        self.temporary = temporary
        self.digest = hashlib.sha256()
        self.crc = 0
        self.base_offset = -1
        self._last: np.void | None = None
        self._next_offset = -1

    def add(self, headers: Headers, contents: Iterable[Buffer]) -> None:
        """Take the next batches, and their bytes as they are stored."""
        if self.base_offset < 0:
            self.base_offset = int(headers["base_offset"][0])
        end = int(ends(headers)[-1])
        for data in contents:
            self.size += memoryview(data).nbytes
            self.digest.update(data)
            self.crc = crc32c(data, self.crc)
            if self.temporary is not None:
                self.temporary.file.append(data)
        self.end = end
        self._last = headers[-1]
        self._next_offset = int(last_offsets(headers[-1:])[0]) + 1

    def object(self, name: str, digest: str) -> Object:
        """Return the row of the object."""
        assert self._last is not None
        last = self._last
        found = {
            "name": name,
            "size": self.size,
            "sha256": digest,
            "crc32c": self.crc,
            "source_position": self.start,
            "base_offset": self.base_offset,
            "next_offset": self._next_offset,
            "last_epoch": int(last["partition_leader_epoch"]),
            "last_batch_position": int(last["position"]) - self.start,
            "last_batch_offset": int(last["base_offset"]),
            "last_batch_crc": int(last["crc"]),
        }
        return found | dict.fromkeys(_OF_SOURCE, CHANGED) if self.is_changed else found


def windows(file: ReadableFile, start: int, end: int) -> Iterator[memoryview]:
    """Return the bytes [start, end) of a file in windows, each of which is overwritten by the next one.

    Raises
    ------
    InputError
        When they cannot be read.
    """
    window = memoryview(bytearray(min(WINDOW_BYTES, max(end - start, 0))))
    for at in range(start, end, WINDOW_BYTES):
        data = window[: end - at]
        try:
            file.read_into(data, at)
        except OSError as error:
            raise InputError(error, at) from error
        yield data


def _sound_runs(headers: Headers) -> Iterator[Headers]:
    """Return contiguous batches with matching checksums."""
    is_sound = headers["crc_ok"] == 1
    if not is_sound.any():
        return
    is_next = np.zeros(len(headers), bool)
    is_next[1:] = is_sound[:-1] & (headers["position"][1:] == ends(headers)[:-1])
    first = np.flatnonzero(is_sound & ~is_next)
    for number, start in enumerate(first):
        behind = int(first[number + 1]) if number + 1 < len(first) else len(headers)
        some = headers[start:behind]
        yield some[is_sound[start:behind]]


def end_of(one: Object) -> int:
    """Return the position in the source file at which an object ends."""
    end: int = one["source_position"] + one["size"]
    return end


def is_contiguous(objects: list[Object]) -> bool:
    """Whether objects are the file from its first byte on, without damage in between."""
    starts = [one["source_position"] for one in objects]
    return starts == [0, *map(end_of, objects)][: len(objects)]


def _has_last_batch(file: ReadableFile, last: Object) -> bool:
    """Whether a file still has the last batch of an object, and so all that comes before it."""
    position = last["source_position"] + last["last_batch_position"]
    if end_of(last) > file.size:
        return False
    try:
        headers = header_at(file, position)
    except OSError:
        return False
    if len(headers) != 1 or int(ends(headers)[0]) != end_of(last):
        return False
    found = (headers["base_offset"][0], headers["partition_leader_epoch"][0], headers["crc"][0])
    return tuple(map(int, found)) == (last["last_batch_offset"], last["last_epoch"], last["last_batch_crc"])


def _unreadable(segment: Segment, position: int, error: OSError) -> Fault:
    size = max(segment.size - position, 0)
    return located(segment, Fault("unreadable_file", error.strerror or str(error), position or None, size))


def source_of(segment: Segment) -> dict[str, Any] | None:
    """Return what shows whether the file of a segment has changed since its listing; None if that cannot be told."""
    path, state = segment.path, segment.listed
    if segment.stored or state is None or state.modified_ns is None:
        state = disk().state(path)
    if state is None:
        return None
    return {
        "path": str(path),
        "size": segment.size,
        "modified_ns": state.modified_ns if state.size == segment.size else None,
        "device": state.device,
        "inode": state.inode,
    }
