"""``kraftlog.Repository``: backups of log directories, in a folder or an object store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from kraftlog.backup.backup_folder import BackupFolder
from kraftlog.backup.capture import Capture
from kraftlog.backup.check import Difference, differences, verify_backups
from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.prune import Prune, prune
from kraftlog.disk.remote_path import LogPath, StorageOptions
from kraftlog.errors import Fault
from kraftlog.layout.backups import Manifest
from kraftlog.layout.discover import LogPaths, each_path
from kraftlog.layout.log_directory import refuse_inside
from kraftlog.topics import names as topic_names


class Repository:
    """Backups of log directories, in a folder or an object store.

    The content of a segment is stored once, whatever the number of backups. A backup is a path for ``kraftlog.open``:
    ``REPOSITORY@NAME``, read up to its cut; ``REPOSITORY@TIME``, the first backup taken at or after a time, read up to
    that time; and ``REPOSITORY``, the newest backup.

    Parameters
    ----------
    path : path
        A folder, or a URI such as ``s3://bucket/nightly``; the first backup makes it a repository.
    storage_options : mapping, optional
        As in ``kraftlog.open``.

    Examples
    --------
    >>> import tempfile, kraftlog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     repository = kraftlog.Repository(f"{folder}/nightly")
    ...     first = repository.backup("tests/golden/codecs/log", topics=["codec-lz4"])
    ...     log = kraftlog.open(f"{folder}/nightly@{first.name}")
    ...     log.records().to_table().num_rows, repository.verify(data=True)
    (751, [])
    """

    def __init__(self, path: object, storage_options: StorageOptions | None = None) -> None:
        self._folder = BackupFolder(path, storage_options)
        self._storage_options = storage_options

    @property
    def path(self) -> LogPath:
        """The folder."""
        return self._folder.path

    def names(self) -> list[str]:
        """Return the names of the backups, the oldest first. A name is the time at which the backup was taken.

        Raises
        ------
        ValueError
            When the folder is not a repository.
        """
        self._folder.check()
        return self._folder.names()

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a backup.

        Raises
        ------
        ValueError
            When there is no such backup.
        OSError, CorruptRecordError
            When it cannot be read.
        """
        self._folder.check()
        return self._folder.manifest(name)

    def files(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the files of a backup, a row for each.

        Parameters
        ----------
        name : str
        columns : sequence of str, optional
            By default all.

        Raises
        ------
        ValueError
            When there is no such backup.
        OSError, CorruptRecordError
            When the list cannot be read, or is not that of the manifest.
        """
        self._folder.check()
        return self._folder.files(name, columns)

    def backup(
        self,
        paths: LogPaths,
        *,
        topics: Iterable[str] | None = None,
        keep: int | None = None,
        link: bool = False,
        checksum: bool = False,
        workers: int = 2,
        exclude_keys: str | Path | None = None,
        encrypt: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Manifest:
        """Take a backup of log directories; only what earlier backups lack is stored.

        Parameters
        ----------
        paths : path or iterable of paths
            Log directories of one or more brokers of a cluster, live or stopped. Nothing is written to them. Of several
            replicas of a partition the line is stored.
        topics : str or iterable of str, optional
            Only these topics, and the metadata log; by default all topics, with Kafka's own.
        keep : int, optional
            Remove older backups afterwards, so that so many are left.
        link : bool
            Store closed segments as hard links, if the repository is on the same file system.
        checksum : bool
            Read all files, also those that have not changed by their size, time and inode.
        workers : int
            Threads that read and write.
        exclude_keys : path, optional
            A file with a key on each line, whose records are left out: UTF-8 or ``base64:...``, after a topic and a
            tab only those of this topic. Earlier backups still have them.
        encrypt : bool
            Encrypt the repository that the first backup makes, with the first key in the file that the environment
            variable ``KRAFTLOG_BACKUP_KEYS`` names. Later backups, and all readers, find its key there.
        on_progress : callable, optional
            Called with the number of bytes that were read since the last call.

        Returns
        -------
        Manifest
            Its ``faults`` are what could not be read and is missing in the backup.

        Raises
        ------
        ValueError
            When the repository is inside a source, the folder has other content, or the key of an encrypted repository
            is missing.
        OSError
            When the repository cannot be written; its earlier backups are unchanged.
        """
        if keep is not None and keep < 1:
            raise ValueError(f"keep: expected at least 1 backup, found {keep}")
        capture = Capture(
            each_path(paths),
            topic_names(topics),
            self._storage_options,
            links=link,
            checksum=checksum,
            workers=workers,
            excluded=ExcludedKeys.of_file(exclude_keys),
            on_progress=on_progress,
        )
        if isinstance(self.path, Path):
            refuse_inside(self.path, capture.folders, is_folder=True)
        self._folder.create(encrypts=encrypt)
        if link and self._folder.key is not None:
            raise ValueError("link: a file of an encrypted repository cannot be one of the source")
        with self._folder.writer(workers) as writer:
            manifest = capture.run(writer)
        if keep is not None:
            prune(self._folder, keep=keep)
        return manifest

    def watch(
        self, paths: LogPaths, seconds: float, *, sleep: Callable[[float], None] = time.sleep, **options: object
    ) -> Iterator[Manifest]:
        """Take a backup of live directories every so many seconds, until the caller stops.

        Parameters
        ----------
        paths : path or iterable of paths
        seconds : float
            From the start of one backup to the start of the next.
        sleep : callable
            Waits for a number of seconds.
        **options
            As in ``backup``.
        """
        while True:
            started = time.monotonic()
            yield self.backup(paths, **options)  # type: ignore[arg-type]
            sleep(max(0.0, seconds - (time.monotonic() - started)))

    def verify(
        self,
        names: Iterable[str] | None = None,
        *,
        data: bool = False,
        workers: int = 2,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Fault]:
        """Compare backups with the objects in the repository, and return what differs.

        Parameters
        ----------
        names : iterable of str, optional
            Names of backups; by default all.
        data : bool
            Read every byte, and compare the checksums of objects and batches; otherwise only sizes are compared.
        workers : int
            Threads that read.
        on_progress : callable, optional
            Called with the number of bytes that were read since the last call.
        """
        self._folder.check()
        return verify_backups(self._folder, names, data=data, workers=workers, on_progress=on_progress)

    def differences(self, before: str, after: str) -> list[Difference]:
        """Return the partitions that differ between two backups, by topic and number."""
        self._folder.check()
        return differences(self._folder, before, after)

    def prune(self, *, keep: int | None = None, names: Iterable[str] = ()) -> Prune:
        """Remove backups, and the objects that none of the others needs.

        Parameters
        ----------
        keep : int, optional
            Keep the newest backups, so many of them.
        names : iterable of str
            Backups to remove as well.

        Returns
        -------
        Prune

        Raises
        ------
        ValueError
            When there is no backup of a name.
        CorruptRecordError
            When the list of a backup that stays cannot be read; nothing is removed then.
        """
        self._folder.check()
        return prune(self._folder, keep=keep, names=names)
