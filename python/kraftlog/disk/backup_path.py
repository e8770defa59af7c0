"""Paths of files in a backup, which is a log directory whose files are parts of the objects of a repository."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from kraftlog.disk.backup_key import BackupKey
from kraftlog.disk.remote_path import LogPath, RemotePath, log_path

SCHEME = "kraftlog-backup"
MARKER = "kraftlog-backup.json"  # the file that makes a folder a repository
BACKUPS = "backups"  # the folder of manifests and file lists


@dataclass(frozen=True)
class BackupPath(RemotePath):
    """The path of a file or folder in a backup; as text ``REPOSITORY@NAME/orders-0``.

    It can replace a ``RemotePath``, and only has plain values.

    Attributes
    ----------
    until : int or None
        Time, in milliseconds, up to which the backup is read; None for the cut at which it was taken.
    backup_key : BackupKey or None
        The key of an encrypted repository.

    Examples
    --------
    >>> from kraftlog.disk.backup_path import BackupPath
    >>> from kraftlog.disk.remote_path import RemotePath
    >>> backup = BackupPath.of(RemotePath.parse("s3://bucket/nightly"), "20261124T030000.000Z")
    >>> str(backup / "orders-0"), backup.backup, str(backup.repository)
    ('s3://bucket/nightly@20261124T030000.000Z/orders-0', '20261124T030000.000Z', 's3://bucket/nightly')
    """

    until: int | None = None
    backup_key: BackupKey | None = None

    @classmethod
    def of(
        cls,
        repository: LogPath,
        backup: str,
        key: str = "",
        until: int | None = None,
        *,
        backup_key: BackupKey | None = None,
    ) -> BackupPath:
        """Return the path of a backup, or of a file in it."""
        if isinstance(repository, RemotePath):
            uri, options = f"{repository.root}/{repository.key}", repository.storage_options
        else:
            uri, options = f"file://{quote(str(repository.absolute()))}", ()
        return cls(f"{SCHEME}://{quote(uri, safe='')}@{backup}", key, options, until, backup_key)

    @property
    def repository(self) -> LogPath:
        """The folder of the repository."""
        quoted = self.root.partition("://")[2].rpartition("@")[0]
        return log_path(unquote(quoted), dict(self.storage_options))

    @property
    def backup(self) -> str:
        """The name of the backup."""
        return self.root.rpartition("@")[2]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.key.rpartition("/")[2] or f"{self.repository.name}@{self.backup}"

    def __str__(self) -> str:
        whole = f"{self.repository}@{self.backup}"
        return f"{whole}/{self.key}" if self.key else whole

    def __repr__(self) -> str:
        return f"BackupPath({str(self)!r})"
