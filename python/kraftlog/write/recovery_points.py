"""``recovery-point-offset-checkpoint``: up to where the log of each partition is known to be on disk."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import delete_file, write_file
from kraftlog.disk.writing import WritableFile
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import read_offset_checkpoint
from kraftlog.layout.names import parse_partition_folder

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
_DIGITS = 20  # of an offset, so that it can be written over in place

_LOGGER = logging.getLogger("kraftlog.write")

Partition = tuple[str, int]


def read_recovery_points(log_directory: Path) -> dict[Partition, int]:
    """Return the recovery points of a log directory; none when the file is missing or, as Kafka does it, damaged."""
    path = log_directory / RECOVERY_POINT_FILE
    if disk().entry(path) is None:
        return {}
    try:
        return read_offset_checkpoint(path)
    except (CorruptRecordError, ValueError) as error:
        _LOGGER.warning("%s: %s; no recovery point is taken from it", path, error)
        return {}


def record_recovery_points(log_directory: Path, offsets: Mapping[Partition, int]) -> None:
    """Bring the recovery points of some partitions up to date; those of others are kept.

    Parameters
    ----------
    log_directory : Path
    offsets : mapping of (str, int) to int
        Up to where the log of a partition is on disk.
    """
    known = read_recovery_points(log_directory)
    if not offsets.items() <= known.items():
        _write(log_directory, {**known, **offsets})


def remove_recovery_point(log_directory: Path, partition: Partition) -> None:
    """Remove the recovery point of a partition; without any other one, the file goes as well."""
    known = read_recovery_points(log_directory)
    if known.pop(partition, None) is None:
        return
    if known:
        _write(log_directory, known)
    else:
        delete_file(log_directory / RECOVERY_POINT_FILE)


def _write(log_directory: Path, known: Mapping[Partition, int]) -> None:
    rows = (f"{topic} {partition} {offset:0{_DIGITS}d}\n" for (topic, partition), offset in known.items())
    write_file(log_directory / RECOVERY_POINT_FILE, f"0\n{len(known)}\n{''.join(rows)}".encode())


class RecoveryPoint:
    """The recovery point of one partition, while its log is written.

    Parameters
    ----------
    folder : Path
        Of the partition, in its log directory.
    keeps : bool
        Whether it stays in the file when the log is closed. That of a metadata log does not: a controller that appends
        to it would not bring it up to date, and what it appended would seem not to be on disk.

    Attributes
    ----------
    offset : int or None
        As it was found; None when there is none.
    """

    def __init__(self, folder: Path, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._log_directory = folder.parent
        self._partition = parse_partition_folder(folder.absolute().name)
        self._file: WritableFile | None = None
        self._position = 0
        known = read_recovery_points(self._log_directory)
        self.offset = known.get(self._partition) if self._partition is not None else None

    def record(self, offset: int) -> None:
        """Write the recovery point, and wait for the disk."""
        if self._partition is not None:
            self.close()
            record_recovery_points(self._log_directory, {self._partition: offset})

    def advance(self, offset: int) -> None:
        """Write the recovery point in place, for the case that this process is stopped; nothing waits for the disk.

        After a loss of power it may be an earlier one, as that of a broker is, which writes it once a minute.
        """
        if self._partition is None:
            return
        if self._file is None:
            self.record(offset)
            path = self._log_directory / RECOVERY_POINT_FILE
            name = "\n{} {} ".format(*self._partition).encode()
            self._position = disk().read_bytes(path).index(name) + len(name)
            self._file = disk().open_update(path)
        self._file.pwrite(b"%0*d" % (_DIGITS, offset), self._position)

    def end(self, offset: int) -> None:
        """Write the last recovery point: the log is closed, and all of it is on disk."""
        if self._keeps:
            self.record(offset)
        elif self._partition is not None:
            self.close()
            remove_recovery_point(self._log_directory, self._partition)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
