"""``recovery-point-offset-checkpoint``: the offset up to which each partition is known to be on disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import delete_file, write_file
from kraftlog.disk.writing import WritableFile
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import read_offset_checkpoint
from kraftlog.layout.names import parse_partition_folder

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
_DIGITS = 20  # digits of an offset, so that it can be overwritten in place

_LOGGER = logging.getLogger("kraftlog.write")

Partition = tuple[str, int]


def read_recovery_points(log_directory: Path) -> dict[Partition, int]:
    """Return the recovery points of a log directory; empty if the file is missing or, as in Kafka, damaged."""
    path = log_directory / RECOVERY_POINT_FILE
    if disk().entry(path) is None:
        return {}
    try:
        return read_offset_checkpoint(path)
    except (CorruptRecordError, ValueError) as error:
        _LOGGER.warning("%s: %s; its recovery points are ignored", path, error)
        return {}


def record_recovery_points(log_directory: Path, offsets: Mapping[Partition, int]) -> None:
    """Update the recovery points of some partitions; others keep theirs.

    Parameters
    ----------
    log_directory : Path
    offsets : mapping of (str, int) to int
        The offset up to which the log of a partition is on disk.
    """
    points = read_recovery_points(log_directory)
    if not offsets.items() <= points.items():
        _write(log_directory, {**points, **offsets})


def remove_recovery_points(log_directory: Path, partitions: Iterable[Partition]) -> None:
    """Remove the recovery points of partitions, and the file with the last one."""
    points = read_recovery_points(log_directory)
    removed = [partition for partition in partitions if points.pop(partition, None) is not None]
    if not removed:
        return
    if points:
        _write(log_directory, points)
    else:
        delete_file(log_directory / RECOVERY_POINT_FILE)


def _write(log_directory: Path, points: Mapping[Partition, int]) -> None:
    rows = (f"{topic} {partition} {offset:0{_DIGITS}d}\n" for (topic, partition), offset in points.items())
    write_file(log_directory / RECOVERY_POINT_FILE, f"0\n{len(points)}\n{''.join(rows)}".encode())


class RecoveryPointFile:
    """The recovery points of a log directory, while its logs are written; thread-safe.

    Parameters
    ----------
    log_directory : Path
    """

    def __init__(self, log_directory: Path) -> None:
        self._log_directory = log_directory
        self._points = read_recovery_points(log_directory)
        self._positions: dict[Partition, int] = {}
        self._file: WritableFile | None = None
        self._lock = threading.Lock()

    def get(self, partition: Partition) -> int | None:
        """Return the recovery point of a partition; None without one."""
        return self._points.get(partition)

    def record(self, offsets: Mapping[Partition, int]) -> None:
        """Write recovery points, and sync; unchanged ones cost nothing."""
        with self._lock:
            if not offsets.items() <= self._points.items():
                self._close()
                record_recovery_points(self._log_directory, {**self._points, **offsets})
                self._points.update(offsets)

    def advance(self, partition: Partition, offset: int) -> None:
        """Write a recovery point in place, without a sync, in case this process is stopped.

        After a power failure it may be an earlier one, as in a broker, which writes it once a minute.
        """
        with self._lock:
            if self._points.get(partition) == offset:
                return
            self._points[partition] = offset
            if partition not in self._positions:
                self._close()
                record_recovery_points(self._log_directory, self._points)
                self._open()
            else:
                assert self._file is not None
                self._file.pwrite(b"%0*d" % (_DIGITS, offset), self._positions[partition])

    def remove(self, partitions: Collection[Partition]) -> None:
        """Remove the recovery points of partitions, and the file with the last one."""
        with self._lock:
            self._close()
            for partition in partitions:
                self._points.pop(partition, None)
            remove_recovery_points(self._log_directory, partitions)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._close()

    def _open(self) -> None:
        path = self._log_directory / RECOVERY_POINT_FILE
        at = 0
        self._file = disk().open_update(path)  # before the first position: an exception may interrupt
        for line in disk().read_bytes(path).splitlines(keepends=True):
            topic, _, rest = line.decode().rstrip("\n").partition(" ")
            number, _, offset = rest.partition(" ")
            if len(offset) == _DIGITS:
                self._positions[topic, int(number)] = at + len(line) - 1 - _DIGITS
            at += len(line)

    def _close(self) -> None:
        self._positions.clear()
        if self._file is not None:
            self._file.close()
            self._file = None


class RecoveryPoint:
    """The recovery point of one partition, while its log is written.

    Parameters
    ----------
    folder : Path
        Folder of the partition, in its log directory.
    keeps : bool
        Whether it stays in the file when the log is closed. For a metadata log it does not: an appending controller
        would not update it, and its records would seem not to be on disk.
    file : RecoveryPointFile, optional
        A file that the writers of several logs share; its creator closes it. By default the object opens its own.

    Attributes
    ----------
    offset : int or None
        The recovery point at the start; None without one.
    """

    def __init__(self, folder: Path, *, keeps: bool = True, file: RecoveryPointFile | None = None) -> None:
        self._keeps = keeps
        self._is_shared = file is not None
        self._partition = parse_partition_folder(folder.absolute().name)
        self._file = file or RecoveryPointFile(folder.parent)
        self.offset = self._file.get(self._partition) if self._partition is not None else None

    def record(self, offset: int) -> None:
        """Write the recovery point, and sync."""
        if self._partition is not None:
            self._file.record({self._partition: offset})

    def advance(self, offset: int) -> None:
        """Write the recovery point in place: see ``RecoveryPointFile.advance``."""
        if self._partition is not None:
            self._file.advance(self._partition, offset)

    def end(self, offset: int) -> None:
        """Write the last recovery point: the log is closed, and all of it is on disk."""
        if self._keeps:
            self.record(offset)
        elif self._partition is not None:
            self._file.remove([self._partition])

    def close(self) -> None:
        """Close the file, unless it is shared; a second time does nothing."""
        if not self._is_shared:
            self._file.close()
