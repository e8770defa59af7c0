"""``--follow`` and ``--last``: rows as they come."""

from __future__ import annotations

import sys
import time

import click

from kraftlog.cli.output import Output, WantedRows
from kraftlog.cli.report import report_faults
from kraftlog.tables.follow import SECONDS_BETWEEN_LOOKS, Follower


def check_follow(output: Output, *, follows: bool, last: int | None, counts: bool, has_end: bool) -> None:
    """Refuse options that do not go with these.

    Raises
    ------
    click.UsageError
        When there are such.
    """
    option = "--follow" if follows else "--last"
    if output.tail is not None or counts:
        other = "--tail" if output.tail is not None else "--count"
        raise click.UsageError(f"{option} and {other} exclude each other")
    if follows and (output.path is not None or output.form == "parquet"):
        raise click.UsageError("--follow writes to standard output alone, and no Parquet: it has no end")
    if follows and has_end:
        raise click.UsageError("--follow has no end: --end-offset and --at do not go with it")


def show_followed(follower: Follower, output: Output, *, follows: bool) -> int:
    """Show rows, as long as there are more to come; returns the exit code.

    Parameters
    ----------
    follower : Follower
    output : Output
    follows : bool
        Whether to look again.
    """
    told = 0
    with output.open(follower.schema, is_endless=follows) as writer:
        while _has_room(follower, writer):
            writer.flush()
            for note in follower.notes[told:]:
                print(note, file=sys.stderr, flush=True)
            told = len(follower.notes)
            if not follows:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
    return report_faults(follower.faults)


def _has_room(follower: Follower, writer: WantedRows) -> bool:
    """Write the rows that are new; returns whether more are wanted."""
    for batch in follower.look():
        writer.write(batch)
        if writer.is_full:
            return False
    return True
