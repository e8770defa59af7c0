"""The location of the remote tier of a log directory, with its keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftlog.disk.remote_path import AnyPath, LogPath, RemotePath, log_path


@dataclass(frozen=True)
class RemoteTier:
    """The remote tier of log directories; one of the paths of a log.

    Attributes
    ----------
    location : str or path
        A folder, or a URI such as ``s3://bucket/prefix``, with segments in Aiven's layout or in that of Kafka's
        ``LocalTieredStorage``, directly or in subfolders.
    keys : mapping of str to path
        Private keys (PEM) by the names of their key pairs, for encrypted segments.

    Examples
    --------
    >>> from kraftlog.layout.tier.remote_tier import RemoteTier
    >>> str(RemoteTier("s3://bucket/tier/").path)
    's3://bucket/tier'
    """

    location: AnyPath = field(repr=False)  # a URI may hold a password
    keys: Mapping[str, AnyPath] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return str(self.path)

    def located(self, storage_options: Mapping[str, str | int | float | bool] | None) -> LogPath:
        """Return the path of the location, with options of its file system."""
        return log_path(self.location, storage_options)

    @property
    def path(self) -> LogPath:
        """The path of the location."""
        path = self.located(None)
        return path if isinstance(path, RemotePath) else path.absolute()
