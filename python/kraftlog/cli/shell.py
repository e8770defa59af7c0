"""``kraftlog shell``: a metadata image as directories and files, at any offset."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from kraftlog.cli.metadata_options import CACHE, note_end
from kraftlog.cli.options import ExistingPath
from kraftlog.cli.report import report_faults
from kraftlog.cli.shell_commands import run_line
from kraftlog.cli.shell_session import ImageAt, Load, Session
from kraftlog.cli.shell_terminal import interact
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_cache import ImageCache

EXIT_FAILED = 1


@click.command()
@click.argument("directory", metavar="DIR", type=ExistingPath())
@click.option("-c", "--command", "lines", multiple=True, help="Run this command and leave; may be given several times.")
@click.option("--at", "offset", type=click.IntRange(min=0), help="Offset of the image; by default the log's last one.")
@click.option("--show-secrets", is_flag=True, help="Show SCRAM credentials, delegation tokens and passwords.")
@click.option("--history-file", type=click.Path(dir_okay=False, path_type=Path), help="Keep the commands in this file.")
@CACHE
def shell(
    directory: LogPath,
    lines: tuple[str, ...],
    offset: int | None,
    show_secrets: bool,
    history_file: Path | None,
    cache: ImageCache | None,
) -> None:
    """Look around in a metadata image as in a file system, and go to other offsets.

    DIR is the folder of __cluster_metadata, a log directory that has it, or a snapshot (.checkpoint). The paths are
    those of kafka-metadata-shell. Without --command, commands are read from the terminal, or from standard input.

    The exit code is 1 when a command of a script has failed, or something could not be read.

    \b
    Example:
      kraftlog shell sample/metadata -c "at 85" -c "cat /topics/byName/meta-0/*"
    """  # noqa: D301  (\b keeps the example as it is)
    faults: list[Fault] = []
    _check_history_file(history_file, directory)
    session = Session(
        _loader(directory, faults, cache),
        sys.stdout,
        sys.stderr,
        offset=offset,
        show_secrets=show_secrets,
        width=lambda: shutil.get_terminal_size().columns if sys.stdout.isatty() else None,
    )
    if not lines and sys.stdin.isatty():
        interact(session, history_file)
        session.failed = False  # at a terminal the message was shown
    else:
        _run(session, lines or sys.stdin)
    sys.exit(report_faults(faults) or (EXIT_FAILED if session.failed else 0))


def _run(session: Session, lines: Iterable[str]) -> None:
    for line in lines:
        run_line(session, line)
        if session.is_done:
            return


def _loader(directory: LogPath, faults: list[Fault], cache: ImageCache | None) -> Load:
    def load(offset: int | None) -> ImageAt:
        found: list[Fault] = []
        log = MetadataLog.open(directory)  # each time: it may have grown
        image = image_at(log, offset, found, cache=cache)
        note_end(image, None)
        faults.extend(fault for fault in found if fault not in faults)
        return image

    return load


def _check_history_file(history_file: Path | None, directory: LogPath) -> None:
    if history_file is None or not isinstance(directory, Path):
        return
    folder = directory.resolve() if directory.is_dir() else directory.resolve().parent
    if history_file.resolve().is_relative_to(folder):
        raise click.UsageError(f"--history-file {history_file} lies in {folder}, which is being read")


COMMANDS = [shell]
