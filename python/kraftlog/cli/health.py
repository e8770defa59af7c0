"""``kraftlog health``: what is not well in a cluster, as its metadata log says."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from kraftlog.cli.metadata_options import (
    AT,
    DIRECTORY,
    LIMIT,
    STRICT,
    check_form,
    note_end,
    offset_of,
    refuse,
    write_table,
)
from kraftlog.cli.options import Columns
from kraftlog.cli.output import FORMATS
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_target
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata.health import health
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at


@click.command("health")
@DIRECTORY
@AT
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--columns", type=Columns(), help="Names with commas between them.")
@click.option("--output", type=click.Path(dir_okay=False), help="A file; standard output when left out.")
@LIMIT
@STRICT
def command(
    directory: LogPath,
    at: int | datetime | None,
    form: str,
    columns: list[str] | None,
    output: str | None,
    limit: int | None,
    strict: bool,
) -> None:
    """List partitions, brokers and configs that need attention, as the metadata image has them.

    DIR is the folder of __cluster_metadata, a log directory that has it, or a snapshot (.checkpoint). Checks are
    offline, under_min_isr, under_replicated, elr_in_use, unregistered_replica, leader_imbalance, fenced_broker and
    orphaned_config. Standard error says how many rows each has. The exit code is 0 when the log could be read whole.

    \b
    Example:
      kraftlog health tests/golden/metadata/log --limit 3
    """  # noqa: D301  (\b keeps the example as it is)
    log, faults = MetadataLog.open(directory), list[Fault]()
    check_target(output, log.folders)
    check_form(form, output)
    offset = offset_of(log, at)
    found = image_at(log, offset, faults)
    refuse(faults, strict=strict)
    note_end(found, offset)
    table = health(found.image)
    write_table(table, form, output, columns, limit)
    counts = table.column("check").value_counts().to_pylist()
    shown = ", ".join(f"{one['counts']} {one['values']}" for one in counts) or "nothing needs attention"
    print(f"{found.image.partitions_count} partitions at offset {found.offset}: {shown}", file=sys.stderr)
    sys.exit(report_faults(faults, listed_by=None))


COMMANDS = [command]
