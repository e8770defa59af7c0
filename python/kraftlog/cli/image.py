"""``kraftlog image`` and ``kraftlog diff``: what the metadata log says of the cluster, and what changed in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

import click
import pyarrow as pa

from kraftlog.cli.metadata_options import (
    AT,
    CACHE,
    DIRECTORY,
    STRICT,
    Moment,
    check_start,
    note_end,
    offset_of,
    refuse,
    write_table,
)
from kraftlog.cli.options import ExistingPath, output_options
from kraftlog.cli.output import CONTINUED, Output, broken_line
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_target
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.metadata.declared.cluster import DeclaredCluster
from kraftlog.metadata.declared.commands import commands
from kraftlog.metadata.declared.strimzi import strimzi
from kraftlog.metadata.declared.terraform import terraform
from kraftlog.metadata.diff.clusters import cluster_diff
from kraftlog.metadata.diff.diff import describe, diff
from kraftlog.metadata.image import TYPES
from kraftlog.metadata.image_table import image_table
from kraftlog.metadata.tree.json import json_texts
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_cache import ImageCache
from kraftlog.metadata_log.image_snapshot import write_image

JSON, TEXT = "json", "text"
COMMANDS_OF_KAFKA, STRIMZI, TERRAFORM = "commands", "strimzi", "terraform"
EXIT_DIFFERS = 3


@click.command()
@DIRECTORY
@AT
@click.option(
    "--type",
    "record_type",
    type=click.Choice(TYPES),
    metavar="TYPE",
    help=f"Only these records, as a table: {', '.join(TYPES)}.",
)
@click.option(
    "--as",
    "declarations",
    type=click.Choice((COMMANDS_OF_KAFKA, STRIMZI, TERRAFORM)),
    help="Topics, configs, ACLs, users and quotas as Kafka's commands, or as resources of Strimzi or Terraform.",
)
@click.option("--cluster-name", metavar="NAME", help="With --as strimzi, name of the Kafka resource.")
@output_options(JSON)
@click.option("--show-secrets", is_flag=True, help="Show SCRAM credentials and passwords.")
@STRICT
@CACHE
@click.option(
    "--snapshot", type=click.Path(file_okay=False, path_type=Path), help="Write it to this folder, as a snapshot."
)
def image(
    directory: LogPath,
    at: int | datetime | None,
    record_type: str | None,
    declarations: str | None,
    cluster_name: str | None,
    output: Output,
    show_secrets: bool,
    strict: bool,
    cache: ImageCache | None,
    snapshot: Path | None,
) -> None:
    """Show the metadata image: topics, brokers, configs and all else that the metadata log says of the cluster.

    DIR is the folder of __cluster_metadata, a log directory that has it, or a snapshot (.checkpoint). Nothing of a
    transaction is shown before it has ended.

    \b
    Example:
      kraftlog image sample/metadata --at 85 --type TopicRecord
    """  # noqa: D301  (\b keeps the example as it is)
    if (cluster_name is not None) != (declarations == STRIMZI):
        raise click.UsageError("--as strimzi and --cluster-name go together")
    if declarations is not None and (record_type is not None or output.form is not None):
        raise click.UsageError("--as goes neither with --type nor with --format")
    if output.form is not None and (output.form == JSON) == (record_type is not None):
        raise click.UsageError("--format json shows the whole image, all others need --type")
    for option, given in (("--columns", output.columns), ("--limit", output.limit)):
        if given is not None and record_type is None:
            raise click.UsageError(f"{option} goes with --type")
    if record_type is None:
        pa.set_memory_pool(pa.system_memory_pool())  # gives back what a piece of text took: a fifth less memory
    log, faults = MetadataLog.open(directory), list[Fault]()
    output.check(log.folders)
    check_target(snapshot, log.folders, "--snapshot")
    offset = offset_of(log, at)
    found = image_at(log, offset, faults, cache=cache)
    refuse(faults, strict=strict)
    note_end(found, offset)
    if declarations is not None:
        declared = DeclaredCluster.of(found.image, show_secrets=show_secrets)
        output.write_texts(_declarations(declared, declarations, cluster_name or ""))
    elif record_type is None:
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


def _declarations(cluster: DeclaredCluster, kind: str, name: str) -> Iterator[str]:
    if kind == STRIMZI:
        return strimzi(cluster, name)
    return terraform(cluster) if kind == TERRAFORM else commands(cluster)


@click.command("diff")
@DIRECTORY
@click.argument("other", metavar="[OTHER]", type=ExistingPath(), required=False)
@click.option("--from", "start", type=Moment(), help="Offset, or time, of the image before; by default nothing.")
@click.option("--to", "end", type=Moment(), help="Offset, or time, of the image after; by default the log's end.")
@click.option("--by-id", is_flag=True, help="With OTHER, match records by their ids, and compare every field.")
@click.option("--exit-code", is_flag=True, help=f"Exit with {EXIT_DIFFERS} when something differs.")
@output_options(TEXT)
@STRICT
def diff_command(
    directory: LogPath,
    other: LogPath | None,
    start: int | datetime | None,
    end: int | datetime | None,
    by_id: bool,
    exit_code: bool,
    output: Output,
    strict: bool,
) -> None:
    """List what changed in the metadata image between two offsets, or what differs between two clusters.

    DIR is the folder of __cluster_metadata, or a log directory that has it. + is what was added, - what was removed,
    ~ what was changed.

    With OTHER it is what differs from the image of DIR to that of OTHER, at their ends, or at --from of DIR and --to of
    OTHER; both may be snapshots, too. Topics, partitions and ACLs are matched by names. Ids, epochs, directories and
    producer ids are not compared, since each cluster makes up its own; --by-id compares all, as of two controllers.

    The exit code is 0 whether something differs or not, and 1 when something could not be read.

    \b
    Example:
      kraftlog diff sample/metadata --from 85 --to 110
    """  # noqa: D301  (\b keeps the example as it is)
    log, faults = MetadataLog.open(directory), list[Fault]()
    if other is None and log.is_snapshot:
        raise click.UsageError(f"{directory} is a snapshot, which has one image only")
    output.check(log.folders)
    if (output.form or TEXT) == TEXT and output.columns is not None:
        raise click.UsageError("--columns does not go with --format text")
    if other is not None:
        changed = _between(log, MetadataLog.open(other), start, end, faults, output, by_id=by_id, strict=strict)
        _write_changes(changed, output)
        sys.exit(_exit_code(changed, faults, exit_code=exit_code))
    if by_id:
        raise click.UsageError("--by-id goes with OTHER")
    first, last = offset_of(log, start), offset_of(log, end)
    before = image_at(log, -1 if first is None else first, faults)
    refuse(faults, strict=strict)
    check_start(before.offset, first)
    found: list[Fault] = []
    after = image_at(log, last, found)
    faults += [fault for fault in found if fault not in faults]
    refuse(faults, strict=strict)
    note_end(after, last)
    changed = diff(before.image, after.image)
    _write_changes(changed, output)
    sys.exit(_exit_code(changed, faults, exit_code=exit_code))


def _between(
    log: MetadataLog,
    other: MetadataLog,
    start: int | datetime | None,
    end: int | datetime | None,
    faults: list[Fault],
    output: Output,
    *,
    by_id: bool,
    strict: bool,
) -> pa.Table:
    output.check(other.folders)
    images = []
    for one, moment in ((log, start), (other, end)):
        offset = None if one.is_snapshot else offset_of(one, moment)
        images.append(image_at(one, offset, faults))
        refuse(faults, strict=strict)
        note_end(images[-1], offset)
    compare = diff if by_id else cluster_diff
    return compare(images[0].image, images[1].image)


def _write_changes(changed: pa.Table, output: Output) -> None:
    if (output.form or TEXT) == TEXT:
        lines = islice(describe(changed), output.limit)
        output.write_texts(f"{broken_line(line, output.text_width, CONTINUED)}\n" for line in lines)
    else:
        write_table(changed, output)


def _exit_code(changed: pa.Table, faults: list[Fault], *, exit_code: bool) -> int:
    """Return the code of faults, which counts first, or the one that says that something differs."""
    return report_faults(faults, listed_by=None) or (EXIT_DIFFERS if exit_code and changed.num_rows else 0)


COMMANDS = [image, diff_command]
