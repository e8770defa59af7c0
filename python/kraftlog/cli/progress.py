"""A progress bar on a terminal for work that takes more than a second; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from kraftlog.cli.target import is_dumb

QUIET_SECONDS = 1.0


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; it is None when it was closed before the start."""
    return stream is not None and stream.isatty()


@contextmanager
def progress_bar(total_bytes: int, *, wanted: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to call with the bytes that were read; None when no bar is shown."""
    if not wanted or not is_terminal(sys.stderr) or is_dumb():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=total_bytes)
    started = time.monotonic()
    shown = False

    def advance(size: int) -> None:
        nonlocal shown
        bar.advance(task, size)
        if not shown and time.monotonic() - started > QUIET_SECONDS:
            shown = True
            bar.start()

    try:
        yield advance
    finally:
        if shown:
            bar.stop()
