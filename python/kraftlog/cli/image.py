"""``kraftlog image`` and ``kraftlog diff``: what the metadata log says of the cluster, and what changed in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

import click

from kraftlog.cli.metadata_options import (
    AT,
    DIRECTORY,
    STRICT,
    Moment,
    note_end,
    offset_of,
    refuse,
    write_table,
)
from kraftlog.cli.options import output_options
from kraftlog.cli.output import Output
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_target
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata.diff.diff import by_step, describe, diff, diff_rows
from kraftlog.metadata.image import TYPES
from kraftlog.metadata.image_table import image_table
from kraftlog.metadata.tree.json import json_texts
from kraftlog.metadata_log.changes import changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import ImageAt, image_at
from kraftlog.metadata_log.image_snapshot import write_image

JSON, TEXT = "json", "text"


@click.command()
@DIRECTORY
@AT
@click.option("--type", "record_type", type=click.Choice(TYPES), help="Only these records, as a table.")
@output_options(JSON)
@click.option("--show-secrets", is_flag=True, help="Show SCRAM credentials and passwords.")
@STRICT
@click.option(
    "--snapshot", type=click.Path(file_okay=False, path_type=Path), help="Write it to this folder, as a snapshot."
)
def image(
    directory: LogPath,
    at: int | datetime | None,
    record_type: str | None,
    output: Output,
    show_secrets: bool,
    strict: bool,
    snapshot: Path | None,
) -> None:
    """Show the metadata image: topics, brokers, configs and all else that the metadata log says of the cluster.

    DIR is the folder of __cluster_metadata, a log directory that has it, or a snapshot (.checkpoint). Nothing of a
    transaction is shown before it has ended.

    \b
    Example:
      kraftlog image tests/golden/metadata/log --at 85 --type TopicRecord
    """  # noqa: D301  (\b keeps the example as it is)
    if output.form is not None and (output.form == JSON) == (record_type is not None):
        raise click.UsageError("--format json shows the whole image, all others need --type")
    for option, given in (("--columns", output.columns), ("--limit", output.limit)):
        if given is not None and record_type is None:
            raise click.UsageError(f"{option} goes with --type")
    log, faults = MetadataLog.open(directory), list[Fault]()
    output.check(log.folders)
    check_target(snapshot, log.folders, "--snapshot")
    offset = offset_of(log, at)
    found = image_at(log, offset, faults)
    refuse(faults, strict=strict)
    note_end(found, offset)
    if record_type is None:
        _write_json(found, output, show_secrets=show_secrets)
    else:
        table = image_table(found.image, record_type, show_secrets=show_secrets)
        write_table(table, output)
    if snapshot is not None and not faults:
        print(write_image(snapshot, found), file=sys.stderr)
    elif snapshot is not None:
        print("no snapshot was written, since the log could not be read whole", file=sys.stderr)
    sys.exit(report_faults(faults, listed_by=None))


def _write_json(found: ImageAt, output: Output, *, show_secrets: bool) -> None:
    texts = json_texts(found.image, found.offset, found.epoch, found.timestamp, show_secrets=show_secrets)
    output.write_texts(chain(texts, ["\n"]))


@click.command("diff")
@DIRECTORY
@click.option("--from", "start", type=Moment(), help="Offset, or time, of the image before; by default nothing.")
@click.option("--to", "end", type=Moment(), help="Offset, or time, of the image after; by default the log's end.")
@click.option("--steps", is_flag=True, help="Show the changes of each image that Kafka publishes on the way.")
@output_options(TEXT)
@STRICT
def diff_command(
    directory: LogPath,
    start: int | datetime | None,
    end: int | datetime | None,
    steps: bool,
    output: Output,
    strict: bool,
) -> None:
    """List what changed in the metadata image between two offsets.

    DIR is the folder of __cluster_metadata, or a log directory that has it. + is what was added, - what was removed,
    ~ what was changed.

    \b
    Example:
      kraftlog diff tests/golden/metadata/log --from 85 --to 110
    """  # noqa: D301  (\b keeps the example as it is)
    log, faults = MetadataLog.open(directory), list[Fault]()
    if log.is_snapshot:
        raise click.UsageError(f"{directory} is a snapshot, which has one image only")
    output.check(log.folders)
    if (output.form or TEXT) == TEXT and output.columns is not None:
        raise click.UsageError("--columns does not go with --format text")
    first, last = offset_of(log, start), offset_of(log, end)
    before = image_at(log, -1 if first is None else first, faults)
    refuse(faults, strict=strict)
    if steps:
        if (output.form or TEXT) != TEXT:
            raise click.UsageError("--steps goes with --format text")
        shown = list(islice(_steps(log, before, last, faults), output.limit))
        refuse(faults, strict=strict)
        output.write_texts(shown)
        sys.exit(report_faults(faults, listed_by=None))
    found: list[Fault] = []
    after = image_at(log, last, found)
    faults += [fault for fault in found if fault not in faults]
    refuse(faults, strict=strict)
    note_end(after, last)
    changed = diff(before.image, after.image)
    if (output.form or TEXT) == TEXT:
        output.write_texts(f"{line}\n" for line in islice(describe(changed), output.limit))
    else:
        write_table(changed, output)
    sys.exit(report_faults(faults, listed_by=None))


def _steps(log: MetadataLog, before: ImageAt, last: int | None, faults: list[Fault]) -> Iterator[str]:
    """Return the changes of each image that Kafka publishes."""
    for steps in changes(log, before, last, faults, by_batch=True):
        for offset, rows in by_step(diff_rows(steps.changed)):
            yield f"@{offset}\n" + "".join(f"  {line}\n" for line in describe(rows))


COMMANDS = [image, diff_command]
