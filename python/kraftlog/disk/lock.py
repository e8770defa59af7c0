"""The lock that keeps two writers out of one log directory: Kafka's own, on the file ``.lock``.

Kafka holds it while it runs, through ``FileChannel.tryLock``, which is a POSIX record lock. Such a lock belongs to a
process and an inode: a process can take it twice, and loses it when it closes any descriptor of the file. Writers
within one process are therefore excluded by device and inode of the locked file, which are the same under every name of
a folder, and a locked file is not opened again. The file stays after the lock is released, as in Kafka.
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

_held: set[FileId] = set()  # device and inode of log directories and of their lock files
_guard = threading.Lock()
os.register_at_fork(after_in_child=_held.clear)  # a child process inherits no lock


class LogDirectoryLockedError(KraftlogError, OSError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A log directory that a broker or another writer has locked; ``waited`` is how many seconds it was waited for."""

    def __init__(self, directory: Path, waited: float = 0.0) -> None:
        how_long = f" since more than {waited:.0f} s" if waited else ""
        super().__init__(f"{directory}: {LOCK_FILE} is held by a broker or another writer{how_long}; stop it first")
        self.directory = directory


class LogDirectoryLock:
    """The held locks of one or more log directories; ``close`` or the end of a ``with`` block releases them.

    Parameters
    ----------
    *directories : Path
        Log directories from Kafka's ``log.dirs``. Several names of one directory are locked once.

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
            file, ids = self._locked[-1]  # after an interruption it is still in the list, for another try
            file.close()
            _held.difference_update(ids)
            self._locked.pop()

    def close(self) -> None:
        """Release the locks; a second call does nothing."""
        with _guard:
            self._give_up()

    def __enter__(self) -> LogDirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_log_directories(folders: Iterable[Path]) -> LogDirectoryLock:
    """Lock the log directories of partition folders.

    A partition folder that is a symbolic link belongs to the log directory of the link and to that of its target:
    brokers of both would write to it.

    Parameters
    ----------
    folders : iterable of Path
        Folders such as ``orders-0``, which need not exist.

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
    """Return the parent of a folder and, while the folder is a symbolic link, the parents of its targets."""
    path = folder.absolute()
    if path.name in ("", ".."):
        path = path.resolve()
    found = [path.parent]
    while (target := disk().link_target(path)) is not None and len(found) < 40:  # Linux's limit
        path = path.parent / target
        found.append(path.parent)
    return found
