"""Log files as memory."""

from __future__ import annotations

import mmap
import os

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.types import Buffer


def map_file(path: LogPath) -> Buffer:
    """Map a file for reading; a remote one is read as a whole. Only for code that does not read files by windows yet.

    It is unmapped when nothing refers to the returned object any more.
    """
    if isinstance(path, RemotePath):
        return disk().read_bytes(path)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
