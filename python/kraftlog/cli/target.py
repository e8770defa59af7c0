"""Where a command may write."""

from __future__ import annotations

from pathlib import Path

import click

from kraftlog.log.log import Log


def check_output(output: str | None, log: Log) -> None:
    """Refuse an output file in a folder that is read: nothing may be written there."""
    if output in (None, "-"):
        return
    target = Path(str(output)).resolve()
    for folder in log.folders:
        if target.parent == folder.resolve():
            raise click.UsageError(f"--output {output} lies in {folder}, which is being read; choose another folder")
