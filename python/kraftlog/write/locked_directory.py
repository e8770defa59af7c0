"""A log directory that a process has locked, to write to several of its logs."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.durable import remove_unfinished
from kraftlog.disk.lock import LogDirectoryLock
from kraftlog.write.recovery_points import RecoveryPointFile


class LockedLogDirectory:
    """The lock and the recovery points of a log directory, which the writers of its logs share.

    Parameters
    ----------
    path : Path
        Path of the log directory.

    Attributes
    ----------
    recovery_points : RecoveryPointFile

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = LogDirectoryLock(path)
        try:
            remove_unfinished(path)
            self.recovery_points = RecoveryPointFile(path)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Release the lock; a second time does nothing."""
        self.recovery_points.close()
        self._lock.close()
