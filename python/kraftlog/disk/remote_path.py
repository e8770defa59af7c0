"""Paths of files on a file system that is not mounted, and the little that is asked of them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from kraftlog.disk.shown_uri import shown_uri

if TYPE_CHECKING:
    from kraftlog.disk.entries import Entry

StorageOptions = Mapping[str, str | int | float | bool]

_URI = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^/?]*)/*(?P<key>.*?)(?:\?(?P<query>\w+=.*))?")
_SCHEMES = {"s3a": "s3", "s3n": "s3"}  # what Hadoop calls S3
_LOCAL_SCHEMES = ("file", "local")


@dataclass(frozen=True, order=True)
class RemotePath:
    """A file or folder that pyarrow or fsspec can reach; it has those methods of ``Path`` that readers use.

    It holds plain values only, so that it can be sent to other processes. Nothing is asked of the file system before a
    method needs it. As text it has no user and no password.

    Attributes
    ----------
    root : str
        Scheme and authority, with the user: ``s3://bucket``, ``sftp://user:password@host``.
    key : str
        The path below it, without a slash at either end.
    storage_options : tuple
        Names and values for the file system.

    Examples
    --------
    >>> from kraftlog.disk.remote_path import RemotePath
    >>> path = RemotePath.parse("s3a://bucket/logs/orders-0/", {"region": "eu-west-1"})
    >>> str(path), path.name, str(path.parent)
    ('s3://bucket/logs/orders-0', 'orders-0', 's3://bucket/logs')
    """

    root: str
    key: str = ""
    storage_options: tuple[tuple[str, str | int | float | bool], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, uri: str, storage_options: StorageOptions | None = None) -> RemotePath:
        """Read a URI; credentials and a query in it become options of the file system.

        Raises
        ------
        ValueError
            When it is no URI, or an option has a value that is no plain one.
        """
        found = _URI.fullmatch(uri)
        if found is None:
            raise ValueError(f"{uri!r} is not a URI such as s3://bucket/logs")
        scheme = _SCHEMES.get(found["scheme"].lower(), found["scheme"].lower())
        options = dict(parse_qsl(found["query"] or ""))
        authority = found["authority"]
        if scheme == "s3" and "@" in authority:
            user, authority = authority.rsplit("@", 1)
            access_key, _, secret_key = user.partition(":")
            options |= {"access_key": unquote(access_key), "secret_key": unquote(secret_key)}
        merged = {**options, **(storage_options or {})}
        for name, value in merged.items():
            if not isinstance(value, Hashable):
                raise ValueError(
                    f"storage option {name} is a {type(value).__name__}, not a text, a number or a truth value"
                )
        return cls(f"{scheme}://{authority}", found["key"].strip("/"), tuple(sorted(merged.items())))

    def __str__(self) -> str:
        root = shown_uri(self.root)
        return f"{root}/{self.key}" if self.key else root

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.key.rpartition("/")[2] or shown_uri(self.root).rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        """The folder that it is in."""
        return replace(self, key=self.key.rpartition("/")[0])

    def __truediv__(self, name: str) -> RemotePath:
        return replace(self, key=f"{self.key}/{name}" if self.key else name)

    def with_name(self, name: str) -> RemotePath:
        """Return the path of another file in the same folder."""
        return self.parent / name

    def absolute(self) -> RemotePath:
        """Return the path itself."""
        return self

    def resolve(self) -> RemotePath:
        """Return the path itself."""
        return self

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        from kraftlog.disk.remote_files import entry_of

        return entry_of(self) is not None

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        from kraftlog.disk.remote_files import entry_of

        entry = entry_of(self)
        return entry is not None and entry.is_dir

    def is_file(self) -> bool:
        """Whether it is a file."""
        from kraftlog.disk.remote_files import entry_of

        entry = entry_of(self)
        return entry is not None and entry.is_file

    def iterdir(self) -> Iterator[RemotePath]:
        """Return what is in the folder; nothing when there is no such folder."""
        for entry in self._entries():
            yield self / entry.name

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Return what is in the folder under names like the pattern, which has no slash."""
        for entry in self._entries():
            if fnmatchcase(entry.name, pattern):
                yield self / entry.name

    def _entries(self) -> list[Entry]:
        from kraftlog.disk.remote_files import entries_of

        try:
            return entries_of(self)
        except FileNotFoundError:
            return []

    def read_bytes(self) -> bytes:
        """Return the whole file."""
        from kraftlog.disk.remote_files import RemoteFile

        file = RemoteFile(self)
        return file.read(0, file.size)

    def read_text(self) -> str:
        """Return the whole file as text."""
        return self.read_bytes().decode()


LogPath = Path | RemotePath


def log_path(path: object, storage_options: StorageOptions | None = None) -> LogPath:
    """Return what a user gave as a path: of a local file, also as ``file://``, or of one somewhere else by its URI."""
    if isinstance(path, Path | RemotePath):
        return path
    text = str(path)
    found = _URI.fullmatch(text)
    if found is None:
        return Path(text)
    if found["scheme"].lower() in _LOCAL_SCHEMES:
        return Path("/" + unquote(found["key"]))
    return RemotePath.parse(text, storage_options)
