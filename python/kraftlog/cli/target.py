"""Where a command may write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from kraftlog.disk.remote_path import LogPath
from kraftlog.tables.log import Log

STANDARD_OUTPUT = "-"


def check_output(output: str | None, log: Log) -> None:
    """Refuse an output file in a folder that is read: nothing may be written there."""
    check_target(output, log.folders)


def check_target(output: str | Path | None, folders: Iterable[LogPath], option: str = "--output") -> None:
    """Refuse a file or folder that lies in one of the folders, which are read, or is one."""
    if output is None or str(output) == STANDARD_OUTPUT:
        return
    target = Path(output).resolve()
    for folder in folders:
        if target.parent == folder.resolve() or target == folder.resolve():
            raise click.UsageError(f"{option} {output} lies in {folder}, which is being read; choose another folder")
