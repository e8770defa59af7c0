"""Changes to a log directory that a crash at any moment leaves either done or not done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.writing import WritableFile
from kraftlog.types import Buffer

UNFINISHED = ".unfinished"  # Kafka and readers pass over names that end so
_PIECE = 1 << 20  # bytes that are written again at once
SET_ASIDE = ".deleted"  # Kafka removes these when it starts


@contextmanager
def new_file(path: Path, unfinished: str = UNFINISHED) -> Iterator[WritableFile]:
    """Open a file for writing that takes its name, and the place of an older one, at the end of a ``with`` block.

    Parameters
    ----------
    path : Path
    unfinished : str
        What its name ends in until then. The file is removed when the block raises.

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
    except BaseException:
        with suppress(OSError):
            disk().unlink(temporary)
        raise


def write_file(path: Path, data: Buffer) -> None:
    """Put a file in the place of another one, or of none."""
    with new_file(path) as file:
        file.append(data)


def write_files(files: Mapping[Path, bytes], *, settles: bool = False) -> None:
    """Put files of one folder in the places of others, unless they are the same already.

    ``settles`` brings the names of the folder to disk in any case: a process that was killed may not have done it.
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
    """Cut a file to a size, write its bytes from a position on over themselves, and wait for the disk.

    An fsync that fails leaves what it did not write in the page cache, where it counts as written: it is read as
    before, the next fsync passes over it, and a loss of power takes it. Written again, it comes to the disk or is an
    error.
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
