"""A file system in memory, which can lose what a file system may lose when the power fails.

A file is made durable by its own sync, without its name; names are made durable by a sync of their folder. In between
a crash may keep any of it: see ``Loss``. Sectors of 512 bytes are old, new, or, where a file was extended, zeros. What
one rename does is kept whole or not at all, in both folders, as file systems with a journal do it. Changes of one name
stay in order; those of different names do not. Data and names know nothing of each other: a renamed file may have its
new name before it has its bytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from call_sites import call_site
from faults import Fault
from nodes import File, Folder, Node, Write, applied, closed, dependencies

from kraftlog.disk.backup_path import BackupPath
from kraftlog.disk.disk import Disk
from kraftlog.disk.entries import Entry, FileState
from kraftlog.disk.local_file import ShortReadError
from kraftlog.disk.waiting import about_to_wait
from kraftlog.disk.writing import FileId, WritableFile
from kraftlog.types import Buffer, InputFile

ROOT = 1

_devices = count(1 << 32)  # each disk is a device of its own: what a process that died had locked is free


class Step(NamedTuple):
    """Something that a process asked of the disk; ``site`` is where the code asked for a sync."""

    number: int
    name: str
    path: Path
    detail: str = ""
    site: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.number:4} {self.name:12} {self.path}", self.detail, self.site)))


class Moment(NamedTuple):
    """A disk behind a step that may have changed it, and how many notes the process had made before the step."""

    step: Step
    nodes: dict[int, Node]
    notes: int


@dataclass(frozen=True)
class Loss:
    """What a crash takes of what was not synced; all else reaches the disk.

    Attributes
    ----------
    entries : frozenset of int
        Numbers of operations on entries.
    sectors : mapping of (int, int) to int
        The version that a sector of a file has; see ``File``.
    sizes : mapping of int to int
        The version that the size of a file is of.
    """

    entries: frozenset[int] = frozenset()
    sectors: Mapping[tuple[int, int], int] = field(default_factory=dict)
    sizes: Mapping[int, int] = field(default_factory=dict)


class SimDisk(Disk):
    """A file system in memory; each change is a step with a number.

    Parameters
    ----------
    nodes : dict, optional
        Files and folders by number; by default an empty root.
    fault : Fault, optional
        What fails.
    ignored : str
        Where the code calls a sync that is not done.
    reordered : str
        Where the code syncs a file that is renamed then; it is renamed first.
    """

    def __init__(
        self,
        nodes: Mapping[int, Node] | None = None,
        fault: Fault | None = None,
        ignored: str = "",
        reordered: str = "",
    ) -> None:
        self.nodes: dict[int, Node] = dict(nodes) if nodes is not None else {ROOT: Folder()}
        self.fault = fault
        self.ignored, self.reordered = ignored, reordered
        self.steps: list[Step] = []
        self.moments: list[Moment] = []
        self.notes: list[object] = []
        self.sites: set[str] = set()
        self.actors: set[str] = set()
        self.has_failed = self.is_recovery = self.is_in_thread = False
        self._late: set[int] = set()  # files that are synced behind their rename
        self._device = next(_devices)
        pending = [0]
        for node in self.nodes.values():
            pending += [change.number for change in node.pending]
        self._number = max(pending) + 1
        self._next_node = max(self.nodes) + 1

    # what a crash leaves

    def crash(self, loss: Loss) -> SimDisk:
        """Return the disk that a loss of power leaves."""
        nodes: dict[int, Node] = {}
        sectors: dict[int, dict[int, int]] = {}
        for (node, sector), version in loss.sectors.items():
            sectors.setdefault(node, {})[sector] = version

        def keep(number: int) -> None:
            node = self.nodes[number]
            if isinstance(node, File):
                content = node.after_crash(sectors.get(number, {}), loss.sizes.get(number))
                nodes[number] = File(content, content, content)
                return
            entries = applied(node.durable, [each for each in node.pending if each.number not in loss.entries])
            nodes[number] = Folder(entries, entries)
            for below in entries.values():
                if below not in nodes:
                    keep(below)

        keep(ROOT)
        return SimDisk(nodes)

    def kill(self) -> SimDisk:
        """Return the disk as the next process finds it when this one is killed: with all that is not synced."""
        return SimDisk(self.nodes)

    def state_key(self) -> bytes:
        """Return a digest of all that can be seen, and of what a crash may take of it."""
        digest = hashlib.blake2b(digest_size=16)

        def add(name: str, node: Node) -> None:
            if isinstance(node, File):
                digest.update(f"\0f{name}\0{len(node.view)}\0".encode())
                digest.update(node.view)
                if node.pending or node.durable != node.view:
                    digest.update(repr((node.durable, node.pending)).encode())
                return
            digest.update(f"\0d{name}\0{len(node.view)}\0".encode())
            if node.pending:
                digest.update(repr((sorted(node.durable), node.pending)).encode())
            for each in sorted(node.view):
                add(each, self.nodes[node.view[each]])

        add("", self.nodes[ROOT])
        return digest.digest()

    def files(self) -> dict[str, bytes | None]:
        """Return all that a process sees: paths, with the content of files and None for folders."""
        found: dict[str, bytes | None] = {}

        def walk(prefix: str, folder: Folder) -> None:
            for name, number in sorted(folder.view.items()):
                node = self.nodes[number]
                if isinstance(node, File):
                    found[f"{prefix}/{name}"] = node.view
                else:
                    found[f"{prefix}/{name}"] = None
                    walk(f"{prefix}/{name}", node)

        root = self.nodes[ROOT]
        assert isinstance(root, Folder)
        walk("", root)
        return found

    def settle(self) -> None:
        """Bring all that was written to disk, as time does."""
        self.nodes = dict(self.crash(Loss()).nodes)

    # steps

    def _step(self, name: str, path: Path, detail: str = "", site: str = "") -> Step:
        step = Step(len(self.steps), name, path, detail, site)
        self.steps.append(step)
        if self.fault is not None and self.fault.hits(step, is_in_thread=self.is_in_thread):
            self.has_failed = True
            self.fault.before(step)
        return step

    def _done(self, step: Step) -> None:
        self._number += 1
        self.moments.append(Moment(step, dict(self.nodes), len(self.notes)))
        if self.fault is not None and self.fault.hits(step, is_in_thread=self.is_in_thread):
            self.fault.behind(step)

    def _change(self, folder: int, entries: Mapping[str, int | None]) -> None:
        node = self.nodes[folder]
        assert isinstance(node, Folder)
        self.nodes[folder] = node.change(self._number, entries)

    def _find(self, path: Path) -> int | None:
        """Return the node at a path; None when there is none."""
        number, nodes = ROOT, self.nodes
        for part in _parts(str(path)):
            view = nodes[number].view
            if isinstance(view, bytes):  # of a file
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            found = view.get(part)
            if found is None:
                return None
            number = found
        return number

    def _at(self, path: Path) -> int:
        number = self._find(path)
        if number is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return number

    def _folder(self, path: Path) -> tuple[int, Folder]:
        number = self._at(path)
        node = self.nodes[number]
        if isinstance(node, File):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return number, node

    # reading

    def entries(self, folder: Path) -> list[Entry]:  # type: ignore[override]
        """Return the entries of a folder, sorted by name."""
        if isinstance(folder, BackupPath):
            return super().entries(folder)
        _, node = self._folder(folder)
        return [self._entry(name, node.view[name]) for name in sorted(node.view)]

    def entry(self, path: Path) -> Entry | None:  # type: ignore[override]
        """Return what is at a path; None when nothing is there."""
        if isinstance(path, BackupPath):
            return super().entry(path)
        try:
            number = self._find(path)
        except NotADirectoryError:
            return None
        return None if number is None else self._entry(path.name, number)

    def _entry(self, name: str, number: int) -> Entry:
        node = self.nodes[number]
        return _file_entry(name, len(node.view)) if isinstance(node, File) else _folder_entry(name)

    def state(self, path: Path) -> FileState | None:  # type: ignore[override]
        """Return what changes when a file changes, but its time: this disk has none."""
        entry = self.entry(path)
        return None if entry is None else FileState(entry.size or 0, None, *self.file_id(path))

    def open(self, path: Path, size: int | None = None) -> SimReadFile:  # type: ignore[override]
        """Open a file for reading."""
        if isinstance(path, BackupPath):
            return super().open(path, size)  # type: ignore[return-value]
        about_to_wait()  # so that the seed decides about the order of reads, too
        number = self._at(path)
        self._step("open", path)
        return SimReadFile(self, path, number, size)

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder."""
        found = self.entry(path)
        return found is not None and found.is_dir

    def link_target(self, path: Path) -> Path | None:
        """Return None: there are no links."""
        return None

    def file_id(self, path: Path) -> FileId:
        """Return the device, which is this disk, and the number of a node."""
        return self._device, self._at(path)

    # writing

    def create(self, path: Path) -> SimFile:
        """Open a file that is new, or emptied."""
        return self._opened(path, may_make=True, empties=True)

    def open_append(self, path: Path) -> SimFile:
        """Open a file for appending; it is made when it is missing."""
        return self._opened(path, may_make=True, appends=True)

    def open_update(self, path: Path) -> SimFile:
        """Open a file, which must exist, for changes at any position."""
        return self._opened(path)

    def lock(self, path: Path) -> SimFile:
        """Open a file, which is made when it is missing; there is no other process that could have locked it."""
        return self._opened(path, may_make=True)

    def _opened(self, path: Path, *, may_make: bool = False, empties: bool = False, appends: bool = False) -> SimFile:
        number = self._find(path)
        if number is not None:
            node = self.nodes[number]
            if isinstance(node, Folder):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            if empties and node.view:
                step = self._step("empty", path)
                self.nodes[number] = node.write(Write(self._number, 0, None))
                self._done(step)
            else:
                self._step("open", path)
            return SimFile(self, path, number, appends=appends)
        if not may_make:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        folder, _ = self._folder(path.parent)
        step = self._step("create", path)
        number = self._new(File())
        self._change(folder, {path.name: number})
        self._done(step)
        return SimFile(self, path, number, appends=appends)

    def _new(self, node: Node) -> int:
        number = self._next_node
        self._next_node += 1
        self.nodes[number] = node
        return number

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or a folder another name, and the place of a file that has it."""
        number = self._at(source)
        from_folder, _ = self._folder(source.parent)
        to_folder, _ = self._folder(target.parent)
        replaced = self._find(target)
        if replaced == number:
            return
        if isinstance(self.nodes[number], Folder) and source.absolute() in target.absolute().parents:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(source))
        if replaced is not None:
            self._check_replaced(self.nodes[number], self.nodes[replaced], target)
        step = self._step("rename", source, f"-> {target}")
        if from_folder == to_folder:
            self._change(from_folder, {source.name: None, target.name: number})
        else:
            self._change(to_folder, {target.name: number})
            self._change(from_folder, {source.name: None})
        self._done(step)
        if number in self._late:
            self._late.remove(number)
            self._sync_node(number, self._step("sync", target, "late"))

    @staticmethod
    def _check_replaced(node: Node, replaced: Node, target: Path) -> None:
        if isinstance(replaced, File):
            if isinstance(node, Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
        elif isinstance(node, File):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        elif replaced.view:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(target))

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        number = self._at(path)
        if isinstance(self.nodes[number], Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        step = self._step("unlink", path)
        self._change(self._at(path.parent), {path.name: None})
        self._done(step)

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder."""
        _, node = self._folder(folder)
        if node.view:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))
        step = self._step("remove_folder", folder)
        self._change(self._at(folder.parent), {folder.name: None})
        self._done(step)

    def make_new_folder(self, folder: Path) -> None:
        """Make a folder that is not there yet; FileNotFoundError when the one above is missing."""
        above, _ = self._folder(folder.parent)
        if self._find(folder) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
        step = self._step("make_folder", folder)
        self._change(above, {folder.name: self._new(Folder())})
        self._done(step)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder and what is in it, as far as that is possible."""
        if not self.is_folder(folder):
            return
        try:
            for entry in self.entries(folder):
                if entry.is_dir:
                    self.remove_tree(folder / entry.name)
                else:
                    self.unlink(folder / entry.name)
            self.remove_folder(folder)
        except OSError:
            return

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on disk."""
        self._sync("sync_folder", folder, self._at(folder))

    def sync_file(self, path: Path) -> None:
        """Wait until a file that somebody else wrote is on disk."""
        self._sync("sync_file", path, self._at(path))

    def _sync(self, name: str, path: Path, number: int) -> None:
        site = call_site()
        self.sites.add(site)
        if self.ignored and self.ignored in (site, site.partition(" < ")[0]):
            return
        if self.reordered and self.reordered in (site, site.partition(" < ")[0]) and name != "sync_folder":
            self._late.add(number)
            return
        try:
            step = self._step(name, path, site=site)
        except OSError:
            node = self.nodes[number]
            if isinstance(node, File):
                self.nodes[number] = node.sync_failed()
                self._done(Step(-1, name, path, "failed: what it should have written counts as clean"))
            raise
        self._sync_node(number, step)

    def _sync_node(self, number: int, step: Step) -> None:
        node = self.nodes[number]
        if isinstance(node, File):
            self.nodes[number] = node.synced()
        elif node.pending:
            numbers = closed({change.number for change in node.pending}, dependencies(self.nodes))
            for each, folder in list(self.nodes.items()):
                if isinstance(folder, Folder) and folder.pending:
                    self.nodes[each] = folder.kept(numbers)
        self._done(step)

    def give_to_owner(self, path: Path, folder: Path) -> None:
        """Do nothing: all files have one owner."""
        self._at(path)

    def vanish(self, path: Path) -> None:
        """Remove a file as somebody else does, for good."""
        number, node = self._folder(path.parent)
        entries = {name: each for name, each in node.view.items() if name != path.name}
        self.nodes[number] = Folder(entries, entries)


@lru_cache(maxsize=4096)
def _file_entry(name: str, size: int) -> Entry:
    return Entry(name, False, True, FileState(size))


@lru_cache(maxsize=4096)
def _folder_entry(name: str) -> Entry:
    return Entry(name, True, False)


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, ...]:
    return Path(path).absolute().parts[1:]


class SimFile(WritableFile):
    """A file of a ``SimDisk``, open for writing."""

    def __init__(self, disk: SimDisk, path: Path, number: int, *, appends: bool) -> None:
        self.path = path
        self._disk, self._node, self._appends = disk, number, appends
        self._position = 0
        self._is_open = True
        self.size = len(self._file().view)

    def _file(self) -> File:
        if not self._is_open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.path))
        node = self._disk.nodes[self._node]
        assert isinstance(node, File)
        return node

    @property
    def file_id(self) -> FileId:
        """The device, which is the disk, and the number of the node."""
        return self._disk._device, self._node

    def append(self, data: Buffer) -> None:
        """Write behind what was written before; of a file of ``open_append``: at its end."""
        position = len(self._file().view) if self._appends else self._position
        view = memoryview(data).cast("B")
        self._write("append", bytes(view), position)
        self._position = position + len(view)

    def append_range(self, file: InputFile, start: int, end: int) -> None:
        """Append bytes of another file."""
        self.append(file.read(start, end))

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write over the bytes from a position on."""
        self._write("pwrite", bytes(memoryview(data).cast("B")), position)

    def _write(self, name: str, data: bytes, position: int) -> None:
        self._file()
        if not data:
            return
        detail = f"[{position}, {position + len(data)})"
        try:
            step = self._disk._step(name, self.path, detail)
        except OSError:  # as a full disk does it: a part is written
            self._put(data[: len(data) // 2], position)
            self._disk._done(Step(-1, name, self.path, f"half of {detail}"))
            raise
        self._put(data, position)
        self._disk._done(step)

    def _put(self, data: bytes, position: int) -> None:
        disk = self._disk
        if data:
            disk.nodes[self._node] = self._file().write(Write(disk._number, position, data))

    def truncate(self, size: int) -> None:
        """Cut the file to a size in bytes."""
        node = self._file()
        step = self._disk._step("truncate", self.path, f"to {size}")
        self._disk.nodes[self._node] = node.write(Write(self._disk._number, size, None))
        self._disk._done(step)

    def sync(self) -> None:
        """Wait until what was written is on disk."""
        self._file()
        self._disk._sync("sync", self.path, self._node)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._is_open = False


class SimReadFile:
    """A file of a ``SimDisk``, open for reading."""

    def __init__(self, disk: SimDisk, path: Path, number: int, size: int | None) -> None:
        node = disk.nodes[number]
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        self.path = path
        self._disk, self._node = disk, number
        self.size = len(node.view) if size is None else size

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end)."""
        node = self._disk.nodes[self._node]
        assert isinstance(node, File)
        data = node.view[start:end]
        if len(data) < end - start:
            raise ShortReadError(self.path, end, start + len(data))
        return data

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on."""
        target[:] = self.read(start, start + len(target))

    def close(self) -> None:
        """Do nothing."""


def entry_changes(nodes: Mapping[int, Node]) -> Iterator[tuple[int, str]]:
    """Return the pending operations on entries, with what they do."""
    for node in nodes.values():
        if isinstance(node, Folder):
            for change in node.pending:
                yield change.number, ", ".join(f"{'-' if at is None else '+'}{name}" for name, at in change.entries)
