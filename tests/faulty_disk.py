"""A disk that remembers every change in order, and on which chosen changes fail.

Every change of a file or folder is a step with a name and a path. A test says which steps fail; a write that fails
leaves the first half of its bytes. Reading is that of the real disk.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kraftlog.disk.disk import Disk
from kraftlog.disk.writing import WritableFile
from kraftlog.types import Buffer, InputFile

WRITES = ("append", "pwrite")
SYNCS = ("sync", "sync_file", "sync_folder")


class Step(NamedTuple):
    """A change: ``create``, ``open``, ``append``, ``pwrite``, ``truncate``, ``sync``, ``rename``, ``unlink`` ..."""

    number: int
    name: str
    path: Path


Fails = Callable[[Step], BaseException | None]


def io_error() -> OSError:
    return OSError(errno.EIO, "Input/output error")


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def only(number: int, error: Callable[[], BaseException] = io_error) -> Fails:
    """Fail one step."""
    return lambda step: error() if step.number == number else None


def since(number: int, error: Callable[[], BaseException] = io_error) -> Fails:
    """Fail a step, and each one behind it: the disk is gone."""
    return lambda step: error() if step.number >= number else None


class FaultyDisk(Disk):
    """The real disk, but for the steps that fail.

    Parameters
    ----------
    fails : callable
        Returns the error of a step that is about to be done, or None.
    waits : bool
        Whether to wait for the real disk.

    Attributes
    ----------
    steps : list of Step
        All that was tried, in order.
    """

    def __init__(self, fails: Fails = lambda step: None, *, waits: bool = False) -> None:
        self.fails = fails
        self.waits = waits
        self.steps: list[Step] = []

    def step(self, name: str, path: Path) -> None:
        step = Step(len(self.steps), name, path)
        self.steps.append(step)
        error = self.fails(step)
        if error is not None:
            raise error

    def create(self, path: Path) -> FaultyFile:
        self.step("create", path)
        return FaultyFile(self, super().create(path))

    def open_append(self, path: Path) -> FaultyFile:
        self.step("open" if path.exists() else "create", path)
        return FaultyFile(self, super().open_append(path))

    def open_update(self, path: Path) -> FaultyFile:
        self.step("open", path)
        return FaultyFile(self, super().open_update(path))

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename", target)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.step("unlink", path)
        super().unlink(path)

    def remove_folder(self, folder: Path) -> None:
        self.step("remove_folder", folder)
        super().remove_folder(folder)

    def remove_tree(self, folder: Path) -> None:
        self.step("remove_tree", folder)
        super().remove_tree(folder)

    def make_new_folder(self, folder: Path) -> None:
        self.step("make_folder", folder)
        super().make_new_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        self.step("sync_folder", folder)
        if self.waits:
            Disk.sync_file(self, folder)

    def sync_file(self, path: Path) -> None:
        self.step("sync_file", path)
        if self.waits:
            super().sync_file(path)


class FaultyFile(WritableFile):
    """A file of a ``FaultyDisk``."""

    def __init__(self, disk: FaultyDisk, file: WritableFile) -> None:
        self.path, self.size = file.path, file.size
        self._disk, self._file = disk, file

    def append(self, data: Buffer) -> None:
        try:
            self._disk.step("append", self.path)
        except OSError:
            self._file.append(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            raise
        self._file.append(data)

    def append_range(self, file: InputFile, start: int, end: int) -> None:
        self.append(file.read(start, end))

    def pwrite(self, data: Buffer, position: int) -> None:
        try:
            self._disk.step("pwrite", self.path)
        except OSError:
            self._file.pwrite(memoryview(data).cast("B")[: memoryview(data).nbytes // 2], position)
            raise
        self._file.pwrite(data, position)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self.path)
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.step("sync", self.path)
        if self._disk.waits:
            self._file.sync()

    def close(self) -> None:
        self._file.close()
