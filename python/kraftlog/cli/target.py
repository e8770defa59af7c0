"""Where a command may write, and how a file gets its name."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import new_file
from kraftlog.disk.remote_path import LogPath
from kraftlog.disk.writing import AppendedFile
from kraftlog.layout.log_directory import refuse_inside

if TYPE_CHECKING:
    from kraftlog.types import Buffer

STANDARD_OUTPUT = "-"
LESS = "FRX"  # what git tells less as well: colours, and no waiting where all fits the screen


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
    _refuse_inside(Path(output), folders, option)
    there, above = disk().entry(target), disk().entry(target.parent)
    if there is not None and there.is_file and not force:
        raise click.UsageError(f"{option} {output} exists; --force replaces it")
    if above is None or not above.is_dir:
        raise click.UsageError(f"{option} {output}: there is no folder {target.parent}")


def _refuse_inside(target: Path, folders: Iterable[LogPath], option: str, *, is_folder: bool = False) -> None:
    try:
        refuse_inside(target, folders, is_folder=is_folder)
    except ValueError as error:
        raise click.UsageError(f"{option} {error}") from None


def check_new_folder(folder: Path, folders: Iterable[LogPath] = (), option: str = "--output") -> None:
    """Refuse a folder that holds something, what is no folder, and a place in a log directory.

    Parameters
    ----------
    folder : Path
    folders : iterable of Path or RemotePath
        Those that are read.
    option : str
        Which names it.
    """
    _refuse_inside(folder, folders, option, is_folder=True)
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


def is_dumb() -> bool:
    """Whether the terminal moves no cursor: it gets no progress bar and no bold text."""
    return os.environ.get("TERM") in ("dumb", "unknown")


def has_styles() -> bool:
    """Whether terminals get bold text (https://no-color.org: NO_COLOR counts when it is not empty)."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def pager() -> str | None:
    """Return the command of KRAFTLOG_PAGER, or else PAGER; None where none is set, or the program is not there."""
    command = os.environ.get("KRAFTLOG_PAGER", os.environ.get("PAGER", "")).strip()
    words = command.split()
    return command if words and words != ["cat"] and shutil.which(words[0]) else None


@contextmanager
def _paged(command: str) -> Iterator[IO[bytes]]:
    """Open a pager, which shows what is written; waits for its end."""
    environment = {"LESS": LESS, **os.environ}
    with subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        try:
            with io.BufferedWriter(_Terminal(process.stdin)) as file:
                yield file
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            while process.poll() is None:
                with suppress(KeyboardInterrupt):  # which the pager has got as well, and may go on
                    process.wait()


@contextmanager
def open_target(output: str | None, *, force: bool, is_paged: bool = False) -> Iterator[IO[bytes]]:
    """Open standard output, or a file that takes its name when the ``with`` block ends; never when it raises.

    Parameters
    ----------
    output : str or None
        None and - are standard output. A device or a pipe is written as it is.
    force : bool
        Whether an existing file is replaced.
    is_paged : bool
        Whether a pager shows what goes to standard output, which is a terminal.
    """
    if output is None or output == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        command = pager() if is_paged else None
        if command is not None:
            with _paged(command) as shown:
                yield shown
            return
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    check_target(path, (), force=force)
    with (
        disk().create(path) if is_device(path) else new_file(path) as file,
        io.BufferedWriter(cast(io.RawIOBase, AppendedFile(file))) as buffered,
    ):
        yield buffered


class _Terminal(io.RawIOBase):
    """The input of a pager, which shows it on a terminal."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        written = self._pipe.write(data)
        self._pipe.flush()
        return written
