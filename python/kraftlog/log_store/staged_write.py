"""Rows that tasks have staged in files become one transaction of a store: begin, stage, commit or abort.

The commit opens a ``LogStore`` for as long as it takes, so that between two commits a broker, another job or another
store can use the log directory. Staged batches are appended like those of any producer, before PrepareCommit: when a
driver dies before that, the next store that opens the log directory aborts what was appended; when it dies after that,
the next store finishes it. This needs no record of the write, unless it overwrites topics (``overwrites``). The
progress of a sequence of batches is a committed offset in the same transaction.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from kraftlog.disk.disk import disk
from kraftlog.disk.lock import LogDirectoryLock, LogDirectoryLockedError, containing_directories
from kraftlog.errors import KraftlogError
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, META_PROPERTIES
from kraftlog.layout.names import STORE_FOLDER
from kraftlog.log_store.coordinator_file import read_known
from kraftlog.log_store.directory import check_log_directory, partition_folders
from kraftlog.log_store.overwrites import has_manifest
from kraftlog.log_store.staged_transaction import StagedTransaction, committed_batch, last_batch
from kraftlog.log_store.staging import StagedFile, StagingOptions, WriteEndedError, headers_path
from kraftlog.log_store.staging_location import StagingLocation
from kraftlog.log_store.store import LogStore
from kraftlog.log_store.transaction_state import TopicPartition
from kraftlog.log_store.write_id import WriteId, is_earlier

LOCK_PATIENCE = 30.0  # seconds: other writes hold the lock briefly, a broker as long as it runs
_LOCK_PAUSE = 0.05
_REMOVED = ".removed"  # suffix of a write's folder that is no longer needed

_LOGGER = logging.getLogger("kraftlog.log_store")
_T = TypeVar("_T")


class CommitUnfinishedError(KraftlogError, RuntimeError):
    """A write that is decided but unfinished, or may be, as the disk has failed.

    The next opening of the log directory finishes it, or aborts it if it is undecided.
    """


def begin(log_directory: Path, write: WriteId, location: StagingLocation | None = None) -> Path:
    """Begin a write, and finish what others have decided.

    Parameters
    ----------
    log_directory : Path
        The driver and all tasks see it under this path, unless there is a location. It is made if missing.
    write : WriteId
    location : StagingLocation, optional
        Where tasks send their files.

    Returns
    -------
    Path
        The write's folder, for ``Stager``.

    Raises
    ------
    LogDirectoryLockedError
        When a broker has the log directory.
    FileExistsError
        When the folder only holds other files.
    """
    recover(log_directory)
    if location is not None:
        location.begin(write)
    return make_write_folder(log_directory, write)


def make_write_folder(log_directory: Path, write: WriteId) -> Path:
    """Make the folder of a write if it is missing, without looking for other writes."""
    folder = write.folder(log_directory)
    while not _is_there(folder):
        with suppress(FileNotFoundError):  # another write may remove the parent folder at its end
            disk().make_folder(folder)
    return folder


def commit(
    log_directory: Path,
    write: WriteId,
    staged: Iterable[StagedFile],
    *,
    overwrite: bool = False,
    topics: Mapping[str, int] | None = None,
    options: StagingOptions | None = None,
    location: StagingLocation | None = None,
) -> dict[TopicPartition, int] | None:
    """Make the staged rows visible, all or none.

    A log directory without a metadata log becomes a store with its topics. After an open transaction of another
    producer, readers at read_committed see the rows once that has ended; a warning names the producer and where it
    began. ``overwrite`` removes such transactions with their rows.

    Parameters
    ----------
    log_directory : Path
    write : WriteId
    staged : iterable of StagedFile
        Files of one attempt at each task.
    overwrite : bool
        Whether the rows replace all records of the topics.
    topics : mapping of str to int, optional
        Partition counts of topics that do not exist. With ``overwrite`` these topics are emptied even without rows for
        them.
    options : StagingOptions, optional
        Those of the staged files: topics that do not exist get sizes of segments and batches that fit them.
    location : StagingLocation, optional
        Where tasks have sent their files. They are removed at the end.

    Returns
    -------
    dict of (str, int) to int, or None
        The offset of the first row of each partition; None if the batch was committed before, and the staged rows are
        dropped.

    Raises
    ------
    WriteEndedError
        When the write was aborted, or a recovery has ended it; nothing is written then.
    CommitUnfinishedError
        When something failed at the decision or after it.
    LogDirectoryLockedError
        When a broker has the log directory.
    ReusedTransactionalIdError
        When the batches of its transactional id belong to another query.
    StoreError
        When a topic cannot be made or has fewer partitions, or the disk fails; nothing is visible then.
    RecordError
        When a log is damaged.

    Examples
    --------
    >>> import tempfile, kraftlog, pyarrow as pa
    >>> from kraftlog.log_store.staging import Stager, StagingOptions
    >>> from kraftlog.log_store.write_id import new_write
    >>> with tempfile.TemporaryDirectory() as name:
    ...     log_directory, write = Path(name), new_write()
    ...     stager = Stager(begin(log_directory, write), StagingOptions(), task=0)
    ...     stager.write("orders", 0, pa.record_batch({"value": [b"one", b"two"]}))
    ...     offsets = commit(log_directory, write, stager.finish())
    ...     log = kraftlog.open(log_directory, topics=["orders"])
    ...     log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    [b'one', b'two']
    """
    files = sorted(staged, key=lambda each: (each.topic, each.partition, each.task, each.number))
    if location is not None and not is_repetition(log_directory, write):
        location.fetch(write, files, make_write_folder(log_directory, write))
    transaction: StagedTransaction | None = None
    try:
        with _opened(log_directory) as store:
            done = committed_batch(store, write)
            if done is not None:
                _LOGGER.warning(
                    "%s: batch %s of transactional id %s was committed before; its staged rows are dropped",
                    log_directory,
                    write.batch_id,
                    write.transactional_id,
                )
                _remove_row(log_directory, write, location)  # not later ones: another driver may be using them
                return None
            _check_staged(write.folder(log_directory), files)
            transaction = StagedTransaction(store, write, write.folder(log_directory))
            offsets = transaction.append(files, topics or {}, overwrite=overwrite, options=options or StagingOptions())
            try:
                transaction.commit()
            except BaseException:
                store._abandon()  # no markers before the old records are deleted: the next store does both
                raise
            _remove_row(log_directory, write, location)
    except Exception as error:
        if transaction is None or not transaction.may_be_decided:
            raise
        state = "is decided, but not finished" if transaction.is_decided else "may be decided, or not"
        raise CommitUnfinishedError(
            f"{log_directory}: the write {write.name} {state} ({error}); do not repeat it before "
            "kraftlog.log_store.staged_write.recover, or the next write, has finished it"
        ) from error
    return offsets


def is_repetition(log_directory: Path, write: WriteId) -> bool:
    """Whether a write is a batch that was committed before, as far as the files show without opening the store."""
    known = read_known(log_directory) if write.transactional_id is not None else None
    return known is not None and last_batch(known.groups, write) is not None


def abort(log_directory: Path, write: WriteId, location: StagingLocation | None = None) -> None:
    """Remove the staged rows of a write; finish a write that may be decided."""
    if location is not None:
        location.end(write)
    folder = write.folder(log_directory)
    if not _is_there(folder):
        return
    try:
        if has_manifest(folder):
            recover(log_directory)
        with _locked(log_directory):
            if _is_there(folder):
                _remove(folder)
    except LogDirectoryLockedError:  # a broker holds the lock, so nobody else can decide the write
        if _is_there(folder) and not has_manifest(folder):
            _remove(folder)


def recover(log_directory: Path) -> None:
    """Finish the writes that are decided but whose drivers ended before finishing them.

    Parameters
    ----------
    log_directory : Path
        It is made if missing.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has the log directory.
    FileExistsError
        When the folder only holds other files.
    """
    check_log_directory(log_directory)
    disk().make_folder(log_directory)
    with _locked(log_directory):
        is_store = _is_there(log_directory / META_PROPERTIES)
        if not is_store or _is_there(log_directory / CLEAN_SHUTDOWN):
            return
    with _opened(log_directory):
        pass


def abort_unfinished(log_directory: Path) -> list[str]:
    """Finish the writes that are decided, and remove all others; call it only when no job is running.

    Parameters
    ----------
    log_directory : Path

    Returns
    -------
    list of str
        Names of the removed writes. A broker can then start on the log directory.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has the log directory.
    """
    recover(log_directory)
    with _locked(log_directory):
        removed = []
        for folder in _write_folders(log_directory):
            if not has_manifest(folder):
                removed.append(folder.name)
            _remove(folder)
        return removed


@contextmanager
def _opened(log_directory: Path) -> Iterator[LogStore]:
    """Open the store of a log directory once others have released its lock."""
    check_log_directory(log_directory)

    def new_store() -> LogStore:
        return LogStore(log_directory, sync_threads=0, adopts_partitions=True, new_uuid=lambda: uuid.uuid4().bytes)

    with (
        _patiently(lambda: LogDirectoryLock(*_directories_of_links(log_directory))),
        _patiently(new_store) as store,
    ):
        for folder in _write_folders(log_directory):
            if has_manifest(folder):  # its driver is dead; the store has finished or aborted the write
                _remove(folder)
        yield store


def _patiently(lock: Callable[[], _T]) -> _T:
    """Return the result of a function that takes a lock, once others have released it."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            return lock()
        except LogDirectoryLockedError as error:
            if time.monotonic() >= deadline:
                raise LogDirectoryLockedError(error.directory, LOCK_PATIENCE) from None
            time.sleep(_LOCK_PAUSE)


def _locked(log_directory: Path) -> LogDirectoryLock:
    return _patiently(lambda: LogDirectoryLock(log_directory, *_directories_of_links(log_directory)))


def _directories_of_links(log_directory: Path) -> list[Path]:
    """Return the other log directories that symbolic links of partitions point to."""
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
            raise WriteEndedError(f"{path}: the write was aborted or has ended; its file is gone")
        if there.size != file.size_in_bytes:
            raise WriteEndedError(f"{path}: expected {file.size_in_bytes} bytes, found {there.size}")


def _remove_row(log_directory: Path, write: WriteId, location: StagingLocation | None) -> None:
    """Remove the files of a write, and of earlier writes of its transactional id, which can no longer commit."""
    if location is not None:
        location.end(write)
    for folder in _write_folders(log_directory):
        if folder.name == write.name or is_earlier(folder.name, write):
            _remove(folder)


def _write_folders(log_directory: Path) -> list[Path]:
    """Return the folders of writes, after removing those marked for removal."""
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
    """Remove the folder of a write: first rename it, in one step."""
    removed = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}{_REMOVED}")  # an earlier removal may have left one
    disk().rename(folder, removed)
    disk().remove_tree(removed)  # an abandoned task may still write to it
    _remove_store(folder.parent)


def _remove_store(store: Path) -> None:
    """Remove the folder of all writes, at which a broker would stop, unless another write is under way."""
    try:
        disk().remove_folder(store)
    except OSError:
        return
    disk().sync_folder(store.parent)
