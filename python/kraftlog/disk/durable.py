"""Changes to a log directory that a crash at any moment leaves either done or not done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.writing import WritableFile
from kraftlog.types import Buffer

UNFINISHED = ".unfinished"  # Kafka and readers ignore names with this suffix
_PIECE = 1 << 20  # bytes that are copied or rewritten at once
SET_ASIDE = ".deleted"  # Kafka removes these files when it starts


@contextmanager
def new_file(path: Path, unfinished: str = UNFINISHED) -> Iterator[WritableFile]:
    """Open a file for writing that gets its name, replacing an older file, at the end of a ``with`` block.

    Parameters
    ----------
    path : Path
    unfinished : str
        Suffix of its name until then. The file is removed when the block raises.

    Raises
    ------
    OSError
        When it cannot be written, with ``path``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_file(Path(folder) / "name") as file:
    ...         file.append(b"some")
    ...         file.append(b" bytes")
    ...     (Path(folder) / "name").read_bytes()
    b'some bytes'
    """
    with _renamed_file(path, unfinished) as file:
        yield file
    disk().sync_folder(path.parent)


@contextmanager
def _renamed_file(path: Path, unfinished: str) -> Iterator[WritableFile]:
    temporary = path.with_name(path.name + unfinished)
    try:
        with disk().create(temporary) as file:
            yield file
            file.sync()
        disk().rename(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            disk().unlink(temporary)
        if isinstance(error, OSError) and error.filename == str(temporary):  # which nobody knows, and is gone
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_file(path: Path, data: Buffer) -> None:
    """Create or replace a file."""
    with new_file(path) as file:
        file.append(data)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file to a new one, and wait until its content is on disk."""
    with closing(disk().open(source)) as file, disk().create(target) as copy:
        for position in range(0, file.size, _PIECE):
            copy.append_range(file, position, min(position + _PIECE, file.size))
        copy.sync()


def write_files(files: Mapping[Path, bytes], *, settles: bool = False) -> None:
    """Create or replace files of one folder, unless they have the same content already.

    ``settles`` syncs the names of the folder in any case: a killed process may not have done it.
    """
    changed = [path for path, data in files.items() if not _holds(path, data)]
    for path in changed:
        with _renamed_file(path, UNFINISHED) as file:
            file.append(files[path])
    if changed or settles:
        disk().sync_folder(next(iter(files)).parent)


def _holds(path: Path, data: bytes) -> bool:
    there = disk().entry(path)
    return there is not None and there.size == len(data) and disk().read_bytes(path) == data


def remove_unfinished(folder: Path) -> None:
    """Remove files of a folder that a process left unfinished."""
    for path in disk().matches(folder, f"*{UNFINISHED}"):
        if isinstance(path, Path):
            disk().unlink(path)


def write_again(path: Path, start: int, size: int | None = None) -> None:
    """Truncate a file to a size, rewrite its bytes from a position on, and sync.

    A failed fsync leaves unwritten pages in the page cache marked as clean: they can still be read, the next fsync
    skips them, and a power failure loses them. Rewriting them brings them to disk or raises an error.
    """
    source = disk().open(path)
    with closing(source), disk().open_update(path) as file:
        end = source.size if size is None else size
        if size is not None:
            file.truncate(size)
        for position in range(start, end, _PIECE):
            file.pwrite(source.read(position, min(position + _PIECE, end)), position)
        file.sync()


def set_aside(path: Path) -> None:
    """Rename a file as Kafka does with one that it is about to delete."""
    disk().rename(path, path.with_name(path.name + SET_ASIDE))
    disk().sync_folder(path.parent)


def delete_file(path: Path) -> None:
    """Delete a file."""
    disk().unlink(path)
    disk().sync_folder(path.parent)
