"""The lock that keeps two writers out of one log directory: Kafka's own, on the file ``.lock``.

Kafka takes it for as long as it runs, through ``FileChannel.tryLock``, which is a POSIX record lock. Such a lock
belongs to a process, so writers within one process are kept apart by a list of what is held. The file stays when the
lock goes, as Kafka leaves it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType

from kraftlog.disk.durable import give_to_owner

LOCK_FILE = ".lock"

_held: set[Path] = set()
_guard = threading.Lock()


class LogDirectoryLockedError(OSError):
    """A log directory that a broker or another writer has locked."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory}: {LOCK_FILE} is held by a broker or another writer; stop it first")
        self.directory = directory


class LogDirectoryLock:
    """A held lock; ``close`` gives it up, and so does the end of a ``with`` block.

    Parameters
    ----------
    directory : Path
        A log directory, one of Kafka's ``log.dirs``.

    Raises
    ------
    LogDirectoryLockedError
        When it is locked already.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._fd: int | None = None
        with _guard:
            # opening the file a second time and closing it would give up the first lock
            if self.directory in _held:
                raise LogDirectoryLockedError(directory)
            fd = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                give_to_owner(fd, self.directory)
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                if isinstance(error, BlockingIOError | PermissionError):  # EAGAIN or EACCES, as the platform likes
                    raise LogDirectoryLockedError(directory) from None
                raise
            self._fd = fd
            _held.add(self.directory)

    def close(self) -> None:
        """Give the lock up; a second time does nothing."""
        with _guard:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
                _held.discard(self.directory)

    def __enter__(self) -> LogDirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_log_directory(folder: Path) -> LogDirectoryLock:
    """Lock the log directory that a partition's folder lies in.

    Parameters
    ----------
    folder : Path
        Of a partition, such as ``orders-0``; the lock is that of the folder above it.

    Returns
    -------
    LogDirectoryLock
        Held until it is closed.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer holds it, in this process or another one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as log_directory:
    ...     with lock_log_directory(Path(log_directory) / "orders-0"):
    ...         (Path(log_directory) / ".lock").exists()
    True
    """
    return LogDirectoryLock(folder.resolve().parent)
