"""Writing and removing objects of remote file systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import sleep

from kraftlog.disk.file_systems import locate, naming
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.remote_files import FIRST_PAUSE, TRIES, WINDOW_BYTES, RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.disk.writing import WritableFile
from kraftlog.types import Buffer

_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")


def put(path: RemotePath, pieces: Callable[[], Iterable[Buffer]]) -> None:
    """Write an object, which is visible when it is complete; a temporary failure is tried again.

    Parameters
    ----------
    path : RemotePath
    pieces : callable
        Returns the bytes, for each try. Its exceptions, other than OSError, end the tries.

    Raises
    ------
    OSError
        When the file system fails.
    """
    for tried in range(1, TRIES):
        try:
            return _put(path, pieces())
        except OSError:
            sleep(FIRST_PAUSE * 2 ** (tried - 1))
    return _put(path, pieces())


def _put(path: RemotePath, pieces: Iterable[Buffer]) -> None:
    file_system, where = locate(path)
    waiting = iter(pieces)
    first = next(waiting, b"")  # before the object is begun: an object store cannot take it back
    with naming(path):
        if file_system.type_name not in _WITHOUT_FOLDERS:
            file_system.create_dir(where.rpartition("/")[0], recursive=True)
        stream = file_system.open_output_stream(where)
    with naming(path):
        stream.write(first)
    for piece in waiting:
        with naming(path):
            stream.write(piece)
    with naming(path):
        stream.close()


def remove(path: RemotePath) -> None:
    """Remove an object; FileNotFoundError if it is missing.

    Raises
    ------
    OSError
        When the file system fails.
    """
    file_system, where = locate(path)
    with naming(path):
        file_system.delete_file(where)


def remove_remote_tree(folder: RemotePath) -> None:
    """Remove a folder and its content, unless it is missing; OSError when that fails."""
    file_system, where = locate(folder)
    try:
        with naming(folder):
            file_system.delete_dir(where)
    except FileNotFoundError:
        return


def send(source: LocalFile, target: RemotePath) -> None:
    """Write the bytes of a local file into a new remote file; OSError when that fails."""
    starts = range(0, source.size, WINDOW_BYTES)
    put(target, lambda: (source.read(start, min(start + WINDOW_BYTES, source.size)) for start in starts))


def fetch(source: RemoteFile, target: WritableFile) -> None:
    """Write the bytes of a remote file into a local one; OSError when that fails."""
    for start in range(0, source.size, WINDOW_BYTES):
        target.append(source.read(start, min(start + WINDOW_BYTES, source.size)))
