"""Entries of local folders."""

from __future__ import annotations

import os
import shutil
import stat
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """What changes when a file changes; None where the file system does not say.

    Attributes
    ----------
    size : int
    modified_ns : int or None
    device, inode : int or None
    """

    size: int
    modified_ns: int | None = None
    device: int | None = None
    inode: int | None = None


NO_FILE = FileState(0)  # of what is not a file
_BLOCK = 512  # of st_blocks, whatever the blocks of the file system have


class Entry:
    """A file or folder in a listing.

    Parameters
    ----------
    name : str
    is_dir, is_file : bool
        Links are followed; a dangling link is neither.
    state : FileState or os.DirEntry
        Of a file; or the source to read it from on first use.
    """

    __slots__ = ("_state", "is_dir", "is_file", "name")

    def __init__(self, name: str, is_dir: bool, is_file: bool, state: FileState | os.DirEntry[str] = NO_FILE) -> None:
        self.name = name
        self.is_dir = is_dir
        self.is_file = is_file
        self._state = state

    @property
    def state(self) -> FileState | None:
        """What changes when the file changes, as far as the listing has it; None if it vanished after the listing.

        Raises
        ------
        OSError
            When the file system fails.
        """
        if isinstance(self._state, FileState):
            return self._state
        try:
            return file_state_of(self._state.stat())  # which the entry keeps
        except FileNotFoundError:
            return None

    @property
    def size(self) -> int | None:
        """Bytes of a file, 0 if it is not a file; None if it vanished after the listing. Raises as ``state`` does."""
        state = self.state
        return None if state is None else state.size

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, is_dir={self.is_dir}, is_file={self.is_file})"


def local_entry(path: Path) -> Entry | None:
    """Return the entry at a path, following links; None if it is missing.

    Raises
    ------
    OSError
        When a folder above it is not accessible.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return Entry(path.name, stat.S_ISDIR(found.st_mode), is_file, file_state_of(found) if is_file else NO_FILE)


def allocated_bytes(path: Path) -> int | None:
    """Return the bytes of the blocks that a local file has, links followed; None where its file system does not say.

    Index files that a broker writes to have 10 MiB, most of which is a hole that takes no block.
    """
    try:
        blocks = getattr(path.stat(), "st_blocks", None)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return None if blocks is None else int(blocks) * _BLOCK


def volume_space(path: Path) -> tuple[int, int]:
    """Return the size of the volume of a local path, and how many of its bytes a user may still use."""
    usage = shutil.disk_usage(path)
    return usage.total, usage.free


def modified_ms(path: Path) -> int | None:
    """Return when a local file was last changed, in milliseconds, links followed; None for a missing file."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except (FileNotFoundError, NotADirectoryError):
        return None


def permissions_of_others(path: Path) -> int:
    """Return the permissions of group and others for a file, links followed; none if the file is not this user's own.

    Raises
    ------
    OSError
        When the file is missing, or its file system fails.
    """
    found = path.stat()
    return stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO) if found.st_uid == os.geteuid() else 0


def file_state(path: Path) -> FileState | None:
    """Return the state of a local file, links followed; None for a missing file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return file_state_of(found)


def file_state_of(found: os.stat_result) -> FileState:
    """Return the state of a file from what the system says of it."""
    return FileState(found.st_size, found.st_mtime_ns, found.st_dev, found.st_ino)


def _local_entry(each: os.DirEntry[str]) -> Entry:
    try:
        return Entry(each.name, False, True, each) if each.is_file() else Entry(each.name, each.is_dir(), False)
    except OSError:  # a link that leads to itself: opening it raises the reason
        return Entry(each.name, True, False)


def local_entries(folder: Path) -> list[Entry]:
    """Return the entries of a folder, sorted by name.

    Raises
    ------
    OSError
        When the folder cannot be listed.
    """
    with os.scandir(folder) as found:
        entries = [_local_entry(each) for each in found]
    entries.sort(key=attrgetter("name"))
    return entries
