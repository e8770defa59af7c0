"""Options that the commands of the metadata image share, and how these commands end."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click
import pyarrow as pa

from kraftlog.cli.options import ExistingPath
from kraftlog.cli.output import Output
from kraftlog.errors import Fault, error_from_fault
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_cache import ImageCache
from kraftlog.times import milliseconds


class Moment(click.ParamType[Any]):
    """An offset, or a time as text that ``kraftlog.times`` reads."""

    name = "offset or timestamp"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | datetime:
        """Return the offset or the time."""
        if isinstance(value, int | datetime):
            return value
        if value.isdecimal():
            return int(value)
        try:
            return datetime.fromtimestamp(milliseconds(value) / 1000, UTC)
        except (ValueError, OverflowError) as error:
            self.fail(f"{value!r} is not an offset, and {error}", param, ctx)


DIRECTORY = click.argument("directory", metavar="DIR", type=ExistingPath())
AT = click.option(
    "--at",
    type=Moment(),
    help="Offset of the last record that counts, or a time such as -1h; by default the end.",
)
STRICT = click.option("--strict", is_flag=True, help="Show nothing when the log cannot be read whole.")

CACHE = click.option(
    "--cache/--no-cache",
    default=True,
    callback=lambda _context, _option, is_on: ImageCache() if is_on else None,
    help="Keep the image of a long log, below XDG_CACHE_HOME, and start from it the next time.  [default: cache]",
)


def offset_of(log: MetadataLog, moment: int | datetime | None) -> int | None:
    """Return the offset that is meant; None for the end of the log."""
    return log.offset_at(milliseconds(moment)) if isinstance(moment, datetime) else moment


def refuse(faults: list[Fault], *, strict: bool) -> None:
    """Raise for the first fault when nothing may be missing."""
    if strict and faults:
        raise error_from_fault(faults[0])


def check_start(last_offset: int, offset: int | None) -> None:
    """Refuse a start after the end of the log."""
    if offset is not None and offset > last_offset:
        raise click.UsageError(
            f"--from {offset} is after the end of the log; its last offset is {last_offset}, give that or less"
        )


def note_end(found: ImageAt, offset: int | None) -> None:
    """Say on standard error where the log ends, when an offset behind it was asked for, or a snapshot is newer."""
    if found.log_end_offset is not None:
        print(
            f"the log ends at offset {found.log_end_offset}, before the snapshot of {found.offset + 1}, "
            "which the image is of",
            file=sys.stderr,
        )
    if offset is not None and offset > found.offset:
        print(f"the log ends at offset {found.offset}", file=sys.stderr)


def write_table(table: pa.Table, output: Output) -> None:
    """Write the rows and columns of a table that are wanted."""
    for column in output.columns or ():
        if column not in table.column_names:
            raise click.UsageError(f"there is no column {column!r}; there are {', '.join(table.column_names)}")
    table = table.select(output.columns or table.column_names)
    with output.open(table.schema) as writer:
        writer.write(table)
