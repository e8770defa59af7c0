"""Log files as memory."""

from __future__ import annotations

import mmap
import os
from typing import IO

from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.types import Buffer


def map_file(path: LogPath) -> Buffer:
    """Map a file for reading; a remote one is read as a whole.

    It is unmapped when nothing refers to the returned object any more.
    """
    if isinstance(path, RemotePath):
        from kraftlog.disk.remote_map import RemoteMap

        found = RemoteMap(path)
        found.fetch(0, found.size)
        return found.memory
    with path.open("rb") as file:
        return map_open(file)


def map_open(file: IO[bytes]) -> Buffer:
    """Map an open file for reading; it can be closed then."""
    if os.fstat(file.fileno()).st_size == 0:
        return b""  # an empty file cannot be mapped
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
