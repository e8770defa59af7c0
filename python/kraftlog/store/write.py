"""A write from its beginning to its end: begin, stage, commit or abort, and recover what others left."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.lock import LogDirectoryLock, LogDirectoryLockedError, containing_directories
from kraftlog.layout.names import STORE_FOLDER
from kraftlog.store.committed_batches import is_repetition
from kraftlog.store.decision import Decision, decide, is_decided, read_decision
from kraftlog.store.finish import finish, missing_files
from kraftlog.store.staging import StagedFile, WriteEndedError, headers_path
from kraftlog.store.topics import check_log_directory, partition_folders
from kraftlog.store.write_id import WriteId, row_name

LOCK_PATIENCE = 30.0  # seconds: other writes hold the lock for a moment, a broker holds it for good
_LOCK_PAUSE = 0.05
_REMOVED = ".removed"  # what the name of a write's folder ends in when nothing of it is needed

_LOGGER = logging.getLogger("kraftlog.store")


class CommitUnfinishedError(RuntimeError):
    """A write that is decided and not finished: its rows will be there after a recovery, so it must not be repeated."""


def begin(log_directory: Path, write: WriteId) -> Path:
    """Begin a write, and finish what others have decided.

    Parameters
    ----------
    log_directory : Path
        Which the driver and all tasks see under this name. It is made when it is missing.
    write : WriteId

    Returns
    -------
    Path
        The write's folder, for ``Stager``.

    Raises
    ------
    LogDirectoryLockedError
        When a broker has the log directory.
    FileExistsError
        When the folder holds other things, and nothing of a log directory.
    """
    check_log_directory(log_directory)
    disk().make_folder(log_directory)
    with _locked(log_directory):
        _finish_decided(log_directory)
        return make_write_folder(log_directory, write)


def make_write_folder(log_directory: Path, write: WriteId) -> Path:
    """Make the folder of a write, if it is missing, without a look at what others do."""
    folder = write.folder(log_directory)
    while not _is_there(folder):
        with suppress(FileNotFoundError):  # the folder of all writes goes at the end of another write
            disk().make_folder(folder)
    return folder


def commit(
    log_directory: Path,
    write: WriteId,
    staged: Iterable[StagedFile],
    *,
    overwrite: bool = False,
    topics: Mapping[str, int] | None = None,
) -> Decision | None:
    """Make what was staged visible, all of it or nothing.

    Behind an open transaction of another producer, readers at read_committed see it when that has ended; a warning
    names the producer and where it began. With ``overwrite`` such transactions go with their rows.

    Parameters
    ----------
    log_directory : Path
    write : WriteId
    staged : iterable of StagedFile
        Of one attempt at each task.
    overwrite : bool
        Whether the topics lose what they had.
    topics : mapping of str to int, optional
        How many partitions topics get that do not exist. With ``overwrite`` these lose what they had even if there are
        no rows for them.

    Returns
    -------
    Decision or None
        What was written where; None when the batch was committed before, and what was staged is dropped.

    Raises
    ------
    WriteEndedError
        When the write was aborted, or a recovery has ended it; nothing is written then.
    CommitUnfinishedError
        When the write is decided, but something failed afterwards: ``recover`` finishes it.
    LogDirectoryLockedError
        When a broker has the log directory.
    CorruptRecordError
        When a log that is appended to is damaged.

    Examples
    --------
    >>> import tempfile, kraftlog, pyarrow as pa
    >>> from kraftlog.store import BatchOptions, Stager, begin, commit, new_write
    >>> with tempfile.TemporaryDirectory() as name:
    ...     log_directory, write = Path(name), new_write()
    ...     stager = Stager(begin(log_directory, write), write.producer_id, BatchOptions(), task=0)
    ...     stager.write("orders", 0, pa.record_batch({"value": [b"one", b"two"]}))
    ...     done = commit(log_directory, write, stager.finish())
    ...     log = kraftlog.open(log_directory)
    ...     log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    [b'one', b'two']
    """
    files = list(staged)
    with _locked(log_directory):
        _finish_decided(log_directory)
        if is_repetition(log_directory, write):
            _LOGGER.warning(
                "%s: batch %s of transactional id %s was committed before; what was staged of it is dropped",
                log_directory,
                write.batch_id,
                write.transactional_id,
            )
            _remove_row(log_directory, write)
            return None
        _check_staged(write.folder(log_directory), files)
        try:
            decision = decide(
                log_directory,
                write,
                files,
                overwrite=overwrite,
                topics=topics or {},
                timestamp_ms=time.time_ns() // 1_000_000,
            )
        except Exception as error:
            if is_decided(write.folder(log_directory)):
                raise _unfinished(log_directory, write, error) from error
            raise
        try:
            _finish(log_directory, decision)
            _remove_row(log_directory, write)
        except Exception as error:
            raise _unfinished(log_directory, write, error) from error
        return decision


def _unfinished(log_directory: Path, write: WriteId, error: Exception) -> CommitUnfinishedError:
    return CommitUnfinishedError(
        f"{log_directory}: the write {write.name} is decided, but not finished ({error}); do not repeat it: "
        "kraftlog.store.recover finishes it, and so does the next write"
    )


def abort(log_directory: Path, write: WriteId) -> None:
    """Remove what was staged of a write; one that is decided is left to be finished."""
    folder = write.folder(log_directory)
    if not _is_there(folder):
        return
    try:
        with _locked(log_directory):
            _remove_undecided(folder)
    except LogDirectoryLockedError:  # a broker has it, beside which nobody can decide the write any more
        _remove_undecided(folder)


def _remove_undecided(folder: Path) -> None:
    if _is_there(folder) and not is_decided(folder):
        _remove(folder)


def recover(log_directory: Path) -> list[Decision]:
    """Finish the writes that are decided and whose drivers ended before they had finished them.

    Parameters
    ----------
    log_directory : Path

    Returns
    -------
    list of Decision
        What was finished.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has the log directory.
    """
    with _locked(log_directory):
        return _finish_decided(log_directory)


def abort_unfinished(log_directory: Path) -> list[str]:
    """Finish the writes that are decided, and remove all others; to be called only when no job runs.

    Of a decided write whose staged files were deleted, or whose partitions were, this finishes the other partitions.

    Parameters
    ----------
    log_directory : Path

    Returns
    -------
    list of str
        Names of the writes that were removed, or of which a partition was given up. A broker can start on the log
        directory then.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has the log directory.
    """
    with _locked(log_directory):
        removed = []
        for folder in _write_folders(log_directory):
            if not is_decided(folder):
                _remove(folder)
                removed.append(folder.name)
                continue
            decision = _known_decision(folder)
            there = [each for each in decision.partitions if not missing_files(log_directory, decision.write, each)]
            _finish(log_directory, replace(decision, partitions=tuple(there)))
            if len(there) < len(decision.partitions):
                removed.append(folder.name)
        return removed


@contextmanager
def _locked(log_directory: Path) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            lock = LogDirectoryLock(log_directory, *_directories_of_links(log_directory))
            break
        except LogDirectoryLockedError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LOCK_PAUSE)
    with lock:
        yield


def _directories_of_links(log_directory: Path) -> list[Path]:
    """Return the other log directories that partitions lie in, whose folders here are symbolic links."""
    folders = [
        log_directory / f"{topic}-{partition}"
        for topic, partitions in partition_folders(log_directory).items()
        for partition in partitions
    ]
    return list(dict.fromkeys(each for folder in folders for each in containing_directories(folder)[1:]))


def _is_there(folder: Path) -> bool:
    return disk().entry(folder) is not None


def _check_staged(folder: Path, staged: list[StagedFile]) -> None:
    if not _is_there(folder):
        raise WriteEndedError(f"{folder}: the write was aborted or has ended; its folder is gone")
    for file in staged:
        path = folder / file.path
        there = disk().entry(path)
        if there is None or disk().entry(headers_path(path)) is None:
            raise WriteEndedError(f"{path}: the write was aborted or has ended; this file of it is gone")
        if there.size != file.size_in_bytes:
            raise WriteEndedError(f"{path}: {file.size_in_bytes} bytes expected, {there.size} found")


def _finish_decided(log_directory: Path) -> list[Decision]:
    decisions = [_known_decision(folder) for folder in _write_folders(log_directory) if is_decided(folder)]
    for decision in decisions:
        _finish(log_directory, decision)
    return decisions


def _known_decision(folder: Path) -> Decision:
    """Return what somebody else has decided, who may have been killed before it was on disk."""
    disk().sync_folder(folder)
    return read_decision(folder)


def _finish(log_directory: Path, decision: Decision) -> None:
    finish(log_directory, decision)
    _remove(decision.write.folder(log_directory))


def _remove_row(log_directory: Path, write: WriteId) -> None:
    """Remove what is left of a transactional id: earlier attempts at this batch or others, which can do no more."""
    if write.transactional_id is None:
        return
    for folder in _write_folders(log_directory):
        if folder.name.startswith(f"{row_name(write.transactional_id)}-"):
            _remove(folder)


def _write_folders(log_directory: Path) -> list[Path]:
    """Return the folders of writes, rid of those that were to be removed already."""
    store = log_directory / STORE_FOLDER
    if not _is_there(store):
        return []
    folders = []
    for entry in disk().entries(store):
        if entry.name.endswith(_REMOVED):
            disk().remove_tree(store / entry.name)
        else:
            folders.append(store / entry.name)
    if not folders:
        _remove_store(store)
    return folders


def _remove(folder: Path) -> None:
    """Remove the folder of a write: first, in one step, from sight."""
    removed = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}{_REMOVED}")  # an earlier one may still be there
    disk().rename(folder, removed)
    disk().sync_folder(folder.parent)
    disk().remove_tree(removed)  # a task that nobody waits for may still write to it
    _remove_store(folder.parent)


def _remove_store(store: Path) -> None:
    """Remove the folder of all writes, which a broker does not like, unless another write is under way."""
    try:
        disk().remove_folder(store)
    except OSError:
        return
    disk().sync_folder(store.parent)
