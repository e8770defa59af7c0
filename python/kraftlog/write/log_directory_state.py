"""The state of a log directory after its last shutdown: where a broker starts to recover each partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import delete_file
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offset_checkpoint,
)

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class LogDirectoryState:
    """The files of a log directory that a broker reads before it loads logs.

    Attributes
    ----------
    is_clean : bool
        Whether the broker was stopped cleanly; it recovers nothing then.
    recovery_points : dict
        Offsets up to which logs are flushed, by partition.
    log_starts : dict
        Offsets before which records were deleted, by partition.
    """

    is_clean: bool = False
    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, log_directory: Path) -> LogDirectoryState:
        """Read them; a checkpoint that is missing or damaged counts as empty, as for a broker."""
        is_clean = disk().entry(log_directory / CLEAN_SHUTDOWN) is not None
        return cls(is_clean, *(_offsets(log_directory / name) for name in (RECOVERY_POINTS, LOG_START_OFFSETS)))


def remove_clean_shutdown(log_directory: Path) -> None:
    """Remove the file of a clean shutdown, as a broker does when it starts.

    With that file a broker recovers nothing, and would believe the remains of a writer that was killed.
    """
    path = log_directory / CLEAN_SHUTDOWN
    if disk().entry(path) is not None:
        delete_file(path)


def remove_high_watermarks(log_directory: Path) -> None:
    """Remove the high watermarks of a broker before the only replica goes on without it.

    Nobody would advance them, so readers that stop there would not see what is appended. A broker that finds none
    begins at the start of the log, and as the only replica reaches its end at once.
    """
    path = log_directory / HIGH_WATERMARKS
    if disk().entry(path) is not None:
        delete_file(path)


def _offsets(path: Path) -> dict[TopicPartition, int]:
    try:
        return read_offset_checkpoint(path) if disk().entry(path) is not None else {}
    except (OSError, ValueError, CorruptRecordError):
        return {}
