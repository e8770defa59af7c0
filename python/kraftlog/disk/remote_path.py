"""Paths of files on a file system that is not mounted, as plain values."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from kraftlog.disk.shown_uri import shown_uri

StorageOptions = Mapping[str, str | int | float | bool]

_URI = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^/?]*)/*(?P<key>.*?)(?:\?(?P<query>\w+=.*))?")
_HADOOP_PATH = re.compile(r"file:(/(?!/).*)", re.IGNORECASE | re.DOTALL)  # in which % has no special meaning
_SCHEMES = {"s3a": "s3", "s3n": "s3"}  # Hadoop's names of S3
_LOCAL_SCHEMES = ("file", "local")


@dataclass(frozen=True, order=True)
class RemotePath:
    """The path of a file or folder that pyarrow or fsspec can reach, with the pure methods of ``Path``.

    It only has plain values, so that it can be sent to other processes; ``Disk`` accesses the file system. Its text has
    neither user nor password.

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
            When it is not a URI, or an option does not have a plain value.
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
                    f"storage option {name}: expected a text, a number or a boolean, found a {type(value).__name__}"
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
        """Its folder."""
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


LogPath = Path | RemotePath
PathLike = str | os.PathLike[str]
AnyPath = PathLike | RemotePath


def log_path(path: object, storage_options: StorageOptions | None = None) -> LogPath:
    """Return the path of a user's argument: a local one, also as ``file://`` or ``file:/``, or a remote one by its URI.

    Raises
    ------
    TypeError
        When it is neither text nor a path, such as bytes.
    ValueError
        When it is empty, as an unset variable of a script is.
    """
    if isinstance(path, Path | RemotePath):
        return path
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        hint = f"; os.fsdecode makes text of bytes: {os.fsdecode(text)!r}" if isinstance(text, bytes) else ""
        raise TypeError(f"path {text!r} is neither a str nor an os.PathLike{hint}")
    if not text:
        raise ValueError("expected a path, found an empty text")
    if (local := _HADOOP_PATH.fullmatch(text)) is not None:
        return Path(local[1])
    found = _URI.fullmatch(text)
    if found is None:
        return Path(text)
    if found["scheme"].lower() in _LOCAL_SCHEMES:
        return Path("/" + unquote(found["key"]))
    return RemotePath.parse(text, storage_options)


def local_path(path: object) -> Path:
    """Return the path of a folder that will be changed, from a user's argument as in ``log_path``.

    Raises
    ------
    TypeError
        As ``log_path``.
    ValueError
        For a remote path, and for an empty one.
    """
    found = log_path(path)
    if isinstance(found, RemotePath):
        raise ValueError(f"{found}: expected a local path; only local files can be changed")
    return found
