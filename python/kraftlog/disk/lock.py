"""The lock that keeps two writers out of one log directory: Kafka's own, on the file ``.lock``.

Kafka takes it for as long as it runs, through ``FileChannel.tryLock``, which is a POSIX record lock. Such a lock
belongs to a process and an inode: a process gets it a second time, and gives it up as soon as it closes any descriptor
of the file. Writers within one process are therefore kept apart by the device and inode of what they have locked,
which are the same under every name of a folder, and a file that is locked already is not opened again. The file stays
when the lock goes, as Kafka leaves it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from kraftlog.disk.disk import disk
from kraftlog.disk.writing import FileId, WritableFile
from kraftlog.errors import KraftlogError

LOCK_FILE = ".lock"

_held: set[FileId] = set()  # of log directories and of their lock files
_guard = threading.Lock()
os.register_at_fork(after_in_child=_held.clear)  # a child process inherits no lock


class LogDirectoryLockedError(KraftlogError, OSError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A log directory that a broker or another writer has locked."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory}: {LOCK_FILE} is held by a broker or another writer; stop it first")
        self.directory = directory


class LogDirectoryLock:
    """The held locks of one log directory or more; ``close`` gives them up, and so does the end of a ``with`` block.

    Parameters
    ----------
    *directories : Path
        Log directories, of Kafka's ``log.dirs``. Names of the same one are locked once.

    Raises
    ------
    LogDirectoryLockedError
        When one of them is locked already; none is locked then.
    OSError
        When a lock file cannot be opened or made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as log_directory:
    ...     with LogDirectoryLock(Path(log_directory)):
    ...         (Path(log_directory) / ".lock").exists()
    True
    """

    def __init__(self, *directories: Path) -> None:
        self._locked: list[tuple[WritableFile, tuple[FileId, FileId]]] = []
        own: set[FileId] = set()
        with _guard:
            try:
                for directory in directories:
                    if disk().file_id(directory) not in own:
                        self._lock(directory)
                        own.update(*(ids for _, ids in self._locked))
            except BaseException:
                self._give_up()
                raise

    def _lock(self, directory: Path) -> None:
        path = directory / LOCK_FILE
        directory_id = disk().file_id(directory)
        if directory_id in _held or (disk().entry(path) is not None and disk().file_id(path) in _held):
            raise LogDirectoryLockedError(directory)
        try:
            file = disk().lock(path)
        except BlockingIOError:
            raise LogDirectoryLockedError(directory) from None
        ids = directory_id, file.file_id
        self._locked.append((file, ids))
        _held.update(ids)

    def _give_up(self) -> None:
        while self._locked:
            file, ids = self._locked[-1]  # which is still in the list when an exception comes between, for another try
            file.close()
            _held.difference_update(ids)
            self._locked.pop()

    def close(self) -> None:
        """Give the locks up; a second time does nothing."""
        with _guard:
            self._give_up()

    def __enter__(self) -> LogDirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_log_directories(folders: Iterable[Path]) -> LogDirectoryLock:
    """Lock the log directories that folders of partitions lie in.

    The folder of a partition that is a symbolic link lies in the log directory of the link, and in that of what it
    points to: brokers of both would write to it.

    Parameters
    ----------
    folders : iterable of Path
        Such as ``orders-0``; they need not exist.

    Returns
    -------
    LogDirectoryLock
        Held until it is closed.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer holds one of them, in this process or another one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as log_directory:
    ...     with lock_log_directories([Path(log_directory) / "orders-0"]):
    ...         (Path(log_directory) / ".lock").exists()
    True
    """
    return LogDirectoryLock(*(directory for folder in folders for directory in containing_directories(folder)))


def containing_directories(folder: Path) -> list[Path]:
    """Return the folder above another one, and those above what it points to as long as it is a symbolic link."""
    path = folder.absolute()
    if path.name in ("", ".."):
        path = path.resolve()
    found = [path.parent]
    while (target := disk().link_target(path)) is not None and len(found) < 40:  # as many links as Linux follows
        path = path.parent / target
        found.append(path.parent)
    return found
