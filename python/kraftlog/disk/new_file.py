"""Files that are there when they are complete, and not before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kraftlog.disk.durable import UNFINISHED, sync_folder


@contextmanager
def new_file(path: Path, unfinished: str = UNFINISHED) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name, and the place of an older one, at the end of a ``with`` block.

    Parameters
    ----------
    path : Path
    unfinished : str
        What its name ends in until then. The file is removed when the block raises.
    """
    temporary = path.with_name(path.name + unfinished)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
