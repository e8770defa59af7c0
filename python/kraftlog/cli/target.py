"""Where a command may write, and how a file gets its name."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import new_file
from kraftlog.disk.remote_path import LogPath

if TYPE_CHECKING:
    from kraftlog.disk.writing import WritableFile
    from kraftlog.types import Buffer

STANDARD_OUTPUT = "-"


def is_standard_output(output: str | None) -> bool:
    """Whether no file was named."""
    return output is None or output == STANDARD_OUTPUT


def check_target(
    output: str | Path | None, folders: Iterable[LogPath], option: str = "--output", *, force: bool = False
) -> None:
    """Refuse a file or folder that lies in one of the folders, which are read, or is one; and a file that exists.

    Parameters
    ----------
    output : str, Path or None
        As it was given; None and - are standard output.
    folders : iterable of Path or RemotePath
    option : str
        Which names it.
    force : bool
        Whether an existing file is replaced.
    """
    if output is None or str(output) == STANDARD_OUTPUT:
        return
    target = Path(output).resolve()
    for folder in folders:
        if target.parent == folder.resolve() or target == folder.resolve():
            raise click.UsageError(f"{option} {output} lies in {folder}, which is being read; choose another folder")
    there, above = disk().entry(target), disk().entry(target.parent)
    if there is not None and there.is_file and not force:
        raise click.UsageError(f"{option} {output} exists; --force replaces it")
    if above is None or not above.is_dir:
        raise click.UsageError(f"{option} {output}: there is no folder {target.parent}")


def check_new_folder(folder: Path, option: str = "--output") -> None:
    """Refuse a folder that holds something, and what is no folder.

    Parameters
    ----------
    folder : Path
    option : str
        Which names it.
    """
    there = disk().entry(folder)
    if there is None:
        return
    if not there.is_dir:
        raise click.UsageError(f"{option} {folder} is not a folder; give a new or empty one")
    held = sorted(entry.name for entry in disk().entries(folder))
    if held:
        raise click.UsageError(f"{option} {folder} holds {held[0]}; give a new or empty folder")


def is_device(path: Path) -> bool:
    """Whether something is at a path that is no file, such as a device or a pipe."""
    there = disk().entry(path)
    return there is not None and not there.is_file


@contextmanager
def open_target(output: str | None, *, force: bool) -> Iterator[IO[bytes]]:
    """Open standard output, or a file that takes its name when the ``with`` block ends; never when it raises.

    Parameters
    ----------
    output : str or None
        None and - are standard output. A device or a pipe is written as it is.
    force : bool
        Whether an existing file is replaced.
    """
    if output is None or output == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    check_target(path, (), force=force)
    with (
        disk().create(path) if is_device(path) else new_file(path) as file,
        io.BufferedWriter(cast(io.RawIOBase, _Appending(file))) as buffered,
    ):
        yield buffered


class _Appending(io.RawIOBase):
    """A ``WritableFile`` as Python's own files are; it stays open when this is closed."""

    def __init__(self, file: WritableFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        self._file.append(data)
        return memoryview(data).nbytes
