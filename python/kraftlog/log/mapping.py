"""Log files as memory."""

from __future__ import annotations

import mmap
from pathlib import Path

from kraftlog.types import Buffer


def map_file(path: Path) -> Buffer:
    """Map a file for reading. It is unmapped when nothing refers to the returned object any more."""
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
