"""``kraftlog health``: what is not well in a cluster, as its metadata log says."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from kraftlog.cli.metadata_options import (
    AT,
    CACHE,
    DIRECTORY,
    STRICT,
    note_end,
    offset_of,
    refuse,
    write_table,
)
from kraftlog.cli.options import output_options
from kraftlog.cli.output import Output
from kraftlog.cli.report import report_faults
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.discover import stopping_folders
from kraftlog.metadata.health import health
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_cache import ImageCache


@click.command("health")
@DIRECTORY
@AT
@output_options()
@STRICT
@CACHE
def command(
    directory: LogPath,
    at: int | datetime | None,
    output: Output,
    strict: bool,
    cache: ImageCache | None,
) -> None:
    """List partitions, brokers and configs that need attention, as the metadata image has them.

    DIR is the folder of __cluster_metadata, a log directory that has it, or a snapshot (.checkpoint). Checks are
    offline, under_min_isr, under_replicated, elr_in_use, unregistered_replica, leader_imbalance, fenced_broker and
    orphaned_config. Standard error says how many rows each has, and names folders in the log directory with which its
    broker does not start. The exit code is 0 when there are none, and the log could be read whole.

    \b
    Example:
      kraftlog health sample/metadata --limit 3
    """  # noqa: D301  (\b keeps the example as it is)
    log, faults = MetadataLog.open(directory), list[Fault]()
    output.check(log.folders)
    offset = offset_of(log, at)
    found = image_at(log, offset, faults, cache=cache)
    refuse(faults, strict=strict)
    note_end(found, offset)
    table = health(found.image)
    write_table(table, output)
    counts = table.column("check").value_counts().to_pylist()
    shown = ", ".join(f"{one['counts']} {one['values']}" for one in counts) or "nothing needs attention"
    print(f"{found.image.partitions_count} partitions at offset {found.offset}: {shown}", file=sys.stderr)
    faults += stopping_folders({folder.parent for folder in log.folders if isinstance(folder, Path)})
    sys.exit(report_faults(faults, listed_by=None))


COMMANDS = [command]
