"""Files and folders of a ``SimDisk``: what a process sees, what is on disk, and what lies between.

Nodes are values: a change makes a new one, so that a copy of a disk is a copy of a dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

SECTOR = 512
ZEROS = -1  # of a sector that a file got when it was extended, and whose bytes never reached the disk


class Write(NamedTuple):
    """Bytes from a position on; or, without bytes, a new size. ``number`` is that of the operation."""

    number: int
    position: int
    data: bytes | None

    def on(self, content: bytes) -> bytes:
        """Return what a file has behind the write."""
        if self.data is None:
            return content[: self.position].ljust(self.position, b"\0")
        before = content[: self.position].ljust(self.position, b"\0")
        return before + self.data + content[self.position + len(self.data) :]

    def sectors(self, size: int) -> range:
        """Return the sectors that it changes of a file with so many bytes."""
        first, last = self.position, size
        if self.data is not None:
            first, last = min(self.position, size), self.position + len(self.data)
        return range(min(first, last) // SECTOR, -(-max(first, last) // SECTOR))


@dataclass(frozen=True, slots=True)
class File:
    """A file.

    Attributes
    ----------
    view : bytes
        What processes see.
    durable : bytes
        What a crash leaves at least.
    base : bytes
        What processes saw at the last sync. The disk has it, unless that sync failed.
    pending : tuple of Write
        What was written since then.
    """

    view: bytes = b""
    durable: bytes = b""
    base: bytes = b""
    pending: tuple[Write, ...] = ()

    def write(self, change: Write) -> File:
        """Return the file behind a write that no sync has followed."""
        return replace(self, view=change.on(self.view), pending=(*self.pending, change))

    def synced(self) -> File:
        """Return the file behind a sync."""
        return File(self.view, self.after_crash({}, None), self.view)

    def sync_failed(self) -> File:
        """Return the file behind a sync that failed: its pages count as clean, and are never written."""
        return File(self.view, self.durable, self.view)

    def versions(self) -> tuple[bytes, ...]:
        """Return what is on disk, and what processes saw behind each write since the last sync."""
        return _versions(self.durable, self.base, self.pending)

    def touched(self) -> dict[int, list[int]]:
        """Return the sectors that may have one of several contents, with the versions that they may be of."""
        return _touched(self.durable, self.base, self.pending)

    def after_crash(self, sectors: Mapping[int, int], size_of: int | None) -> bytes:
        """Return what a crash leaves of the file.

        Parameters
        ----------
        sectors : mapping of int to int
            The version that a sector is of, or ``ZEROS``; the newest where nothing is said.
        size_of : int or None
            The version that the size is of; None: the newest.
        """
        if not self.pending:
            return self.durable
        if not sectors and size_of is None and self.durable == self.base:
            return self.view
        versions = self.versions()
        size = len(versions[-1 if size_of is None else size_of])
        touched = self.touched()
        parts = []
        for sector in range(-(-size // SECTOR)):
            version = sectors.get(sector, len(versions) - 1) if sector in touched else 0
            data = b"" if version == ZEROS else versions[version][sector * SECTOR : (sector + 1) * SECTOR]
            parts.append(data.ljust(SECTOR, b"\0"))
        return b"".join(parts)[:size]


@lru_cache(maxsize=4096)
def _versions(durable: bytes, base: bytes, pending: tuple[Write, ...]) -> tuple[bytes, ...]:
    found, content = [durable], base
    for change in pending:
        content = change.on(content)
        found.append(content)
    return tuple(found)


@lru_cache(maxsize=4096)
def _touched(durable: bytes, base: bytes, pending: tuple[Write, ...]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    size = len(base)
    for number, change in enumerate(pending, 1):
        for sector in change.sectors(size):
            found.setdefault(sector, [0]).append(number)
        size = change.position if change.data is None else max(size, change.position + len(change.data))
    for sector, versions in found.items():
        if sector * SECTOR >= len(durable):
            versions[0] = ZEROS  # version 0 has no such bytes
    return found


class EntryChange(NamedTuple):
    """What one operation does to the entries of a folder: names, and the node that each has then, or None."""

    number: int
    entries: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder.

    Attributes
    ----------
    view, durable : mapping of str to int
        Nodes by name, as for a file.
    pending : tuple of EntryChange
        Since the last sync, in order.
    """

    view: Mapping[str, int] = field(default_factory=dict)
    durable: Mapping[str, int] = field(default_factory=dict)
    pending: tuple[EntryChange, ...] = ()

    def change(self, number: int, entries: Mapping[str, int | None]) -> Folder:
        """Return the folder behind a change of entries that no sync has followed."""
        change = EntryChange(number, tuple(entries.items()))
        return Folder(applied(self.view, [change]), self.durable, (*self.pending, change))

    def kept(self, numbers: frozenset[int] | set[int]) -> Folder:
        """Return the folder with some operations on disk; what processes see is the same."""
        durable = applied(self.durable, [change for change in self.pending if change.number in numbers])
        return Folder(self.view, durable, tuple(change for change in self.pending if change.number not in numbers))


def applied(entries: Mapping[str, int], changes: list[EntryChange]) -> dict[str, int]:
    """Return entries behind changes."""
    result = dict(entries)
    for change in changes:
        for name, node in change.entries:
            if node is None:
                result.pop(name, None)
            else:
                result[name] = node
    return result


Node = File | Folder


def dependencies(nodes: Mapping[int, Node]) -> dict[int, set[int]]:
    """Return, for each pending change of entries, the earlier ones that are on disk when it is.

    Changes of one name are kept in their order. One operation on two folders, a rename, is kept in both or in none, as
    file systems with a journal do it.
    """
    before: dict[int, set[int]] = {}
    last: dict[tuple[int, str], int] = {}
    changes = sorted(
        (change.number, node, change.entries)
        for node, folder in nodes.items()
        if isinstance(folder, Folder)
        for change in folder.pending
    )
    for number, node, entries in changes:
        needed = before.setdefault(number, set())
        for name, _ in entries:
            earlier = last.get((node, name))
            if earlier is not None and earlier != number:
                needed.add(earlier)
            last[node, name] = number
    return before


def closed(numbers: set[int], before: Mapping[int, set[int]]) -> set[int]:
    """Return operations with all those that they depend on."""
    found, waiting = set[int](), list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(before.get(number, ()))
    return found
