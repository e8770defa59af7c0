"""Listings of local and remote folders; remote folders are listed only once."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.in_order import in_order
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.layout import names

IsWanted = Callable[[str | None, int | None], bool]

FEW = 4  # of so many times as many partitions: an answer that lists all folders has the files of several
LISTINGS_AT_ONCE = 16


class Listing:
    """Folders as they are when they are first asked for.

    A remote folder is listed together with those below it: object stores answer that with one request for a thousand
    files, whatever folders they are in. If only few partitions are wanted, their folders are listed instead.

    Parameters
    ----------
    is_wanted : callable, optional
        Whether the folder of a partition will be asked for; by default each will.
    """

    def __init__(self, is_wanted: IsWanted | None = None) -> None:
        self._is_wanted = is_wanted
        self._tree: dict[RemotePath, list[Entry]] = {}

    def entries(self, folder: LogPath) -> list[Entry]:
        """Return the entries of a folder, by name.

        Raises
        ------
        OSError
            When it cannot be listed.
        """
        if not isinstance(folder, RemotePath):
            return disk().entries(folder)
        if folder not in self._tree:
            self._tree[folder] = disk().entries(folder)
        return self._tree[folder]

    def is_dir(self, path: LogPath) -> bool:
        """Whether a path is a folder; a name of one of Kafka's files is not."""
        if not isinstance(path, RemotePath):
            entry = disk().entry(path)
            return entry is not None and entry.is_dir
        if path not in self._tree and not _is_file_name(path.name):
            self._list_wanted(path)
        return path in self._tree

    def _list_wanted(self, folder: RemotePath) -> None:
        if self._is_wanted is None:
            return self._list_all(folder)
        try:
            entries = disk().entries(folder)
        except FileNotFoundError:
            return None  # a file, or missing
        partitions = {entry.name: names.parse_partition_folder(entry.name) for entry in entries if entry.is_dir}
        wanted = [folder / name for name, of in partitions.items() if of is not None and self._is_wanted(*of)]
        if len(wanted) * FEW > len(partitions):
            return self._list_all(folder)
        self._tree[folder] = entries
        for path, of_partition in zip(wanted, in_order(_entries_now, wanted, LISTINGS_AT_ONCE), strict=True):
            if of_partition is not None:
                self._tree[path] = of_partition
        return None

    def _list_all(self, folder: RemotePath) -> None:
        try:
            self._tree |= disk().tree(folder)
        except FileNotFoundError:
            return  # a file, or missing

    def file(self, path: LogPath) -> Entry | None:
        """Return the entry of a file; None if it is missing."""
        if not isinstance(path, RemotePath):
            return disk().entry(path)
        try:
            return next((entry for entry in self.entries(path.parent) if entry.name == path.name), None)
        except FileNotFoundError:
            return None

    def may_hold(self, path: LogPath) -> bool:
        """Whether a file may exist: not if its folder was listed without it."""
        entries = self._tree.get(path.parent) if isinstance(path, RemotePath) else None
        return entries is None or any(entry.name == path.name for entry in entries)

    def matches(self, pattern: RemotePath) -> list[RemotePath]:
        """Return the files and folders that match a path with ``*``, ``?`` and ``[]`` in its parts.

        Raises
        ------
        ValueError
            When a part is ``**``.
        OSError
            When the folder above the first such part cannot be listed.
        """
        parts = pattern.key.split("/")
        if "**" in parts:
            raise ValueError(f"{pattern}: ** is not supported in URIs; * matches one part of a path")
        first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
        above = RemotePath(pattern.root, "/".join(parts[:first]), pattern.storage_options)
        self._list_all(above)
        return sorted(self._below(above, parts[first:]))

    def _below(self, folder: RemotePath, parts: list[str]) -> Iterator[RemotePath]:
        for entry in self._tree.get(folder, []):
            if fnmatchcase(entry.name, parts[0]):
                if len(parts) == 1:
                    yield folder / entry.name
                else:
                    yield from self._below(folder / entry.name, parts[1:])


def _entries_now(folder: RemotePath) -> list[Entry] | None:
    """Return the entries of a folder; None if it cannot be listed, which is reported when it is asked for."""
    try:
        return disk().entries(folder)
    except OSError:
        return None


def _is_file_name(name: str) -> bool:
    is_known = name in names.KNOWN_FILES or names.parse_checkpoint_file(name) is not None
    return is_known or names.parse_segment_file(name) is not None


def local_matches(text: str) -> list[Path]:
    """Return the local files and folders that match a glob."""
    return sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207  (text may be absolute)
