"""Paths of files inside objects: a range of an object, whose chunks may be compressed and encrypted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from kraftlog.disk.remote_path import LogPath, RemotePath

LOCAL_ROOT = "file://"


@dataclass(frozen=True)
class Chunks:
    """The encoding of a file: how its bytes were cut into chunks, compressed and encrypted.

    Attributes
    ----------
    size : int
        Original bytes of every chunk except the last, which may have fewer.
    file_size : int
        Bytes of the file.
    stored_sizes : tuple of int
        Stored bytes of each chunk; they are contiguous.
    is_compressed : bool
        Whether each chunk is a zstd frame.
    data_key : bytes or None
        Data key of AES-GCM, if each chunk is encrypted: 12 bytes of nonce, then ciphertext and tag.
    aad : bytes
        Additional authenticated data of each chunk.
    is_numbered : bool
        Whether the number of a chunk, as 8 bytes, follows ``aad``.
    """

    size: int
    file_size: int
    stored_sizes: tuple[int, ...]
    is_compressed: bool = False
    data_key: bytes | None = field(default=None, repr=False)
    aad: bytes = field(default=b"", repr=False)
    is_numbered: bool = False

    def aad_of(self, number: int) -> bytes:
        """Return the additional authenticated data of a chunk."""
        return self.aad + number.to_bytes(8) if self.is_numbered else self.aad


@dataclass(frozen=True)
class PartPath(RemotePath):
    """The path of a file that is a part of an object, local or remote.

    It can replace a ``RemotePath``, and only has plain values. As text it is the path of the object.

    Attributes
    ----------
    at : int
        Position of the bytes or chunks in the object.
    start, end : int
        The bytes [start, end) of the original file.
    chunks : Chunks or None
        None if the bytes are stored without encoding.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kraftlog.disk.disk import disk
    >>> from kraftlog.disk.part_path import PartPath
    >>> log = Path("tests/golden/codecs/log/codec-lz4-0/00000000000000000000.log").absolute()
    >>> disk().read_bytes(PartPath.of(log, 16, end=8)) == log.read_bytes()[16:24]
    True
    """

    at: int = 0
    start: int = 0
    end: int = 0
    chunks: Chunks | None = None

    @classmethod
    def of(cls, path: LogPath, at: int = 0, *, start: int = 0, end: int, chunks: Chunks | None = None) -> PartPath:
        """Return the path of a part of an object, or of a part of a part."""
        if isinstance(path, PartPath):
            return replace(path, start=path.start + start, end=path.start + end)
        if isinstance(path, RemotePath):
            return cls(path.root, path.key, path.storage_options, at, start, end, chunks)
        return cls(LOCAL_ROOT, quote(str(path.absolute())[1:]), (), at, start, end, chunks)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.end - self.start

    @property
    def name(self) -> str:
        """The last part of the path of the object."""
        return self.stored_in.name

    @property
    def stored_in(self) -> LogPath:
        """The path of the object."""
        if self.root == LOCAL_ROOT:
            return Path("/" + unquote(self.key))
        return RemotePath(self.root, self.key, self.storage_options)

    @property
    def parent(self) -> Any:
        """The folder that the object is in."""
        return self.stored_in.parent

    def __str__(self) -> str:
        return str(self.stored_in)

    def __repr__(self) -> str:
        return f"PartPath({str(self)!r}, at={self.at}, start={self.start}, end={self.end})"
