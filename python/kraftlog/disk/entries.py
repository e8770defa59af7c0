"""Entries of local folders."""

from __future__ import annotations

import os
import stat
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """A file or folder under its name; ``size`` in bytes, 0 of what is no file."""

    name: str
    is_dir: bool
    is_file: bool
    size: int = 0


def local_entry(path: Path) -> Entry | None:
    """Return what is at a path, links followed; None when nothing is there.

    Raises
    ------
    OSError
        When a folder above it may not be looked into.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return Entry(path.name, stat.S_ISDIR(found.st_mode), is_file, found.st_size if is_file else 0)


def local_entries(folder: Path) -> list[Entry]:
    """Return the entries of a folder, sorted by name.

    A broker may delete or rename a file between the listing and the question for its size: it is left out.

    Raises
    ------
    OSError
        When the folder cannot be listed.
    """
    with os.scandir(folder) as found:
        entries = [entry for each in found if (entry := _scanned(each)) is not None]
    return sorted(entries, key=itemgetter(0))


def _scanned(entry: os.DirEntry[str]) -> Entry | None:
    name = entry.name
    try:
        if not entry.is_file():
            return Entry(name, entry.is_dir(), False)
        return Entry(name, False, True, entry.stat().st_size)
    except FileNotFoundError:
        return None
