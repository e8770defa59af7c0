"""Files of a remote file system that are written whole: objects of a store do not grow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kraftlog.disk.file_systems import locate, naming
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.remote_files import WINDOW_BYTES, RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.disk.writing import WritableFile


def send(source: LocalFile, target: RemotePath) -> None:
    """Write the bytes of a local file into a new remote file; OSError when that fails."""
    with _created(target) as out:
        for start in range(0, source.size, WINDOW_BYTES):
            out.write(source.read(start, min(start + WINDOW_BYTES, source.size)))


def put(target: RemotePath, data: bytes) -> None:
    """Write a small remote file; OSError when that fails."""
    with _created(target) as out:
        out.write(data)


def fetch(source: RemoteFile, target: WritableFile) -> None:
    """Write the bytes of a remote file into a local one; OSError when that fails."""
    for start in range(0, source.size, WINDOW_BYTES):
        target.append(source.read(start, min(start + WINDOW_BYTES, source.size)))


def remove_remote_file(path: RemotePath) -> None:
    """Remove a file, unless it is missing; OSError when that fails."""
    file_system, where = locate(path)
    try:
        with naming(path):
            file_system.delete_file(where)
    except FileNotFoundError:
        return


def remove_remote_tree(folder: RemotePath) -> None:
    """Remove a folder and its content, unless it is missing; OSError when that fails."""
    file_system, where = locate(folder)
    try:
        with naming(folder):
            file_system.delete_dir(where)
    except FileNotFoundError:
        return


@contextmanager
def _created(path: RemotePath) -> Iterator[Any]:
    """Open a new file; it is there when the block has ended without an exception.

    Its folder is made where the file system has folders.
    """
    file_system, where = locate(path)
    with naming(path):
        try:
            out = file_system.open_output_stream(where)
        except FileNotFoundError:
            file_system.create_dir(where.rpartition("/")[0], recursive=True)
            out = file_system.open_output_stream(where)
        with out:
            yield out
