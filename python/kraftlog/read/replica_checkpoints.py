"""Checkpoints of log directories, by replica."""

from __future__ import annotations

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offset_checkpoint,
)
from kraftlog.read.partitions import Replica, ReplicaKind
from kraftlog.topics import COORDINATOR_TOPICS


class ReplicaCheckpoints:
    """Offsets of partitions in checkpoint files; each file is read once.

    Parameters
    ----------
    faults : list of Fault
        Receives unreadable files.
    """

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self._offsets: dict[LogPath, dict[tuple[str, int], int] | None] = {}

    def high_watermark(self, replica: Replica) -> int | None:
        """Return the last high watermark that the broker has recorded; otherwise None."""
        return self._of(replica, HIGH_WATERMARKS)[1]

    def recovery_point(self, replica: Replica) -> int | None:
        """Return the offset before which everything was on disk; None without an entry."""
        return self._of(replica, RECOVERY_POINTS)[1]

    def log_start_offset(self, replica: Replica) -> int | None:
        """Return the log start offset; None without an entry: then it is the base offset of the first segment."""
        return self._of(replica, LOG_START_OFFSETS)[1]

    def cleaner_offset(self, replica: Replica) -> int | None:
        """Return the offset up to which a cleaner has read a log, 0 if it has not; None without the checkpoint."""
        is_there, offset = self._of(replica, CLEANER_OFFSETS)
        return (offset or 0) if is_there else None

    def cleaned_until(self, replica: Replica) -> int:
        """Return the offset up to which a log may have been compacted.

        For an internal compacted topic, in a directory without that checkpoint, it is the last segment, which cleaners
        never read.
        """
        offset, last = self.cleaner_offset(replica), replica.segments[-1]
        if offset is None and last.topic in COORDINATOR_TOPICS:
            return last.base_offset or 0
        return offset or 0

    def _of(self, replica: Replica, name: str) -> tuple[bool, int | None]:
        """Return whether the file exists, and its offset for the log that the broker writes."""
        of = replica.segments[0].topic_partition
        if replica.kind is not ReplicaKind.LIVE or of is None:
            return False, None
        offsets = self.offsets(replica.directory, name)
        return offsets is not None, None if offsets is None else offsets.get(of)

    def offsets(self, directory: LogPath, name: str) -> dict[tuple[str, int], int] | None:
        """Return the entries of a checkpoint by topic and partition; None if it is missing or cannot be read."""
        path = directory / name
        if path not in self._offsets:
            self._offsets[path] = self._read(path)
        return self._offsets[path]

    def _read(self, path: LogPath) -> dict[tuple[str, int], int] | None:
        try:
            return read_offset_checkpoint(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._faults.append(Fault("unreadable_file", f"{path}: {error.strerror or error}"))
        except CorruptRecordError as error:
            self._faults.append(Fault("bad_checkpoint", f"{path.parent}: {error}"))
        return None
