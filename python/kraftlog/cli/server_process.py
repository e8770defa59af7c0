"""A command that serves until a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TypeVar

import click

from kraftlog.disk.durable import write_file
from kraftlog.server.options import LOOPBACK

Command = TypeVar("Command", bound=Callable[..., None])
_PORT = 9092


def address_options(command: Command) -> Command:
    """Add the options that say where a server listens and how others learn it."""
    for option in (
        click.option(
            "--ready-file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write host and port to this file when clients can connect.",
        ),
        click.option("--advertised-host", help="Host that clients connect to, if it is not --host."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 for any free port."
        ),
        click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen at."),
    ):
        command = option(command)
    return command


class EndSignal:
    """Ctrl-C or SIGTERM; made before the server starts, so that neither is missed."""

    def __init__(self) -> None:
        self._has_come = Event()

        def end(_: int, __: FrameType | None) -> None:
            self._has_come.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)

    def wait(self, bootstrap_servers: str, ready_file: Path | None) -> None:
        """Say where clients connect, and wait."""
        print(bootstrap_servers, flush=True)
        if ready_file is not None:
            write_file(ready_file, f"{bootstrap_servers}\n".encode())
        self._has_come.wait()
