"""One segment: a log file, and the files of the same base offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.layout import names


@dataclass(frozen=True, slots=True)
class Beside(Mapping[str, LogPath]):
    """Paths of the files beside a log file, by kind: of many segments most paths are never asked for."""

    folder: LogPath
    names: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> LogPath:
        return self.folder / self.names[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Segment:
    """A log file, or a snapshot of the metadata log, and the files beside it.

    Attributes
    ----------
    path : Path or RemotePath
        Of the file with the record batches.
    size : int
        In bytes, when it was listed.
    base_offset : int or None
        From the file name.
    state : str
        "" for a live segment; ``.deleted`` and the like; ``.checkpoint`` for a snapshot.
    beside : mapping
        Paths of ``index``, ``timeindex``, ``txnindex`` and ``snapshot``, where they exist.
    log_start_offset : int
        Of the partition, as ``log-start-offset-checkpoint`` has it; 0 when it has none. A consumer does not see the
        records before it.
    """

    path: LogPath
    size: int
    base_offset: int | None
    topic: str | None
    partition: int | None
    state: str = ""
    beside: Mapping[str, LogPath] = field(default_factory=dict)
    log_start_offset: int = 0

    @property
    def name(self) -> str:
        """Folder and file name, as messages show it."""
        folder = self.path.parent.name
        return names.printable(f"{folder}/{self.path.name}" if folder else self.path.name)

    @property
    def local_path(self) -> Path:
        """The path of a file that can be changed.

        Raises
        ------
        ValueError
            When it is a remote file.
        """
        if isinstance(self.path, RemotePath):
            raise ValueError(f"{self.path}: only local files can be changed")
        return self.path
