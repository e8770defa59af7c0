"""``kraftlog backup``: log directories of a cluster as backups in a repository, and what is in it."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
import pyarrow as pa

from kraftlog.backup.file_list import log_files
from kraftlog.backup.repository import Repository
from kraftlog.cli import options
from kraftlog.cli.metadata_options import write_table
from kraftlog.cli.options import output_options
from kraftlog.cli.output import Output
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.errors import RecordError
from kraftlog.layout.backups import Manifest
from kraftlog.layout.discover import LogPaths

_TIME = pa.timestamp("ms", "UTC")
_BACKUPS = pa.schema(
    [
        ("name", pa.string()),
        ("taken", _TIME),
        ("cluster_id", pa.string()),
        ("partitions", pa.int64()),
        ("segments", pa.int64()),
        ("size_in_bytes", pa.int64()),
        ("added_bytes", pa.int64()),
        ("faults", pa.int64()),
    ]
)
_PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("segments", pa.int64()),
        ("size_in_bytes", pa.int64()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("stored_end_offset", pa.int64()),
        ("last_epoch", pa.int32()),
        ("gaps", pa.int64()),
    ]
)
_DIFFERENCES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("change", pa.string()),
        ("end_offset_before", pa.int64()),
        ("end_offset_after", pa.int64()),
        ("size_before", pa.int64()),
        ("size_after", pa.int64()),
    ]
)

REPOSITORY = click.argument("repository", metavar="REPOSITORY", type=click.Path())


class _Backup(click.Group):
    """Commands of a repository; without the name of one of them, ``take``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take sources and a target for the arguments of ``take``."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["take", *args]
        return super().parse_args(ctx, args)


@click.group("backup", cls=_Backup)
def command() -> None:
    """Back up the log directories of a cluster, live or stopped, at a consistent cut.

    kraftlog backup SOURCE... REPOSITORY takes a backup, as backup take does. The content of a segment is stored once;
    a later backup only adds what is new. A backup is a path for all commands: REPOSITORY@NAME, read up to its cut;
    REPOSITORY@TIME, the log at a time; and REPOSITORY, the newest backup.

    \b
    Example:
      kraftlog backup sample/broker nightly
    """  # noqa: D301  (\b keeps the example as it is)


@command.command()
@options.PATHS
@REPOSITORY
@click.option("-t", "--topic", "topics", multiple=True, help="Only this topic, and the metadata log. Repeatable.")
@click.option("--keep", type=click.IntRange(min=1), help="Remove older backups, so that so many are left.")
@click.option("--link", is_flag=True, help="Store closed segments as hard links on the same file system.")
@click.option(
    "--encrypt", is_flag=True, help="Encrypt the new repository with the first key in the file KRAFTLOG_BACKUP_KEYS."
)
@options.EXCLUDE_KEYS
@click.option("--checksum", is_flag=True, help="Read all files, also those that look unchanged.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Threads.")
@click.option("--watch", type=float, metavar="SECONDS", help="Take a backup every so many seconds, until interrupted.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def take(paths: LogPaths, repository: str, watch: float | None, no_progress: bool, **given: Any) -> None:
    """Store log directories as a backup in REPOSITORY, a new folder, an object store, or one with earlier backups.

    Paths are log directories of one or more brokers of a cluster. Nothing is written to them. Of several replicas the
    line of each partition is stored. Batches are stored whole, with matching checksums; what cannot be read is named,
    and the exit code is 1 then. The backup ends at a cut, at which no transaction is torn.

    \b
    Examples:
      kraftlog backup take sample/broker nightly --keep 7
      kraftlog backup take sample/broker nightly -t orders
    """  # noqa: D301  (\b keeps the examples as they are)
    store = Repository(repository)
    topics = given.pop("topics") or None
    exit_code = 0
    while True:
        started = time.monotonic()
        with progress_bar(0, wanted=not no_progress) as bar:
            manifest = store.backup(paths, topics=topics, on_progress=bar, **given)
        print(_line(manifest))
        for note in manifest.notes:
            print(note, file=sys.stderr)
        exit_code |= report_faults(manifest.faults, listed_by=f"kraftlog backup show {repository} {manifest.name}")
        if watch is None:
            sys.exit(exit_code)
        time.sleep(max(0.0, watch - (time.monotonic() - started)))


def _line(manifest: Manifest) -> str:
    count = len(manifest.stored_ends)
    of = f"{count} partition{'s' if count != 1 else ''}, {manifest.segments} log files"
    return f"{manifest.name}: {of}, {manifest.size:,} bytes, of which {manifest.stored_size:,} are new"


@command.command("list")
@REPOSITORY
@output_options()
def list_(repository: str, output: Output) -> None:
    """List the backups in a repository, the oldest first.

    \b
    Example:
      kraftlog backup list nightly
    """  # noqa: D301  (\b keeps the example as it is)
    store = Repository(repository)
    rows, failed = [], 0
    for name in store.names():
        try:
            manifest = store.manifest(name)
        except (OSError, RecordError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = EXIT_FAULTS
            continue
        rows.append(
            {
                "name": name,
                "taken": manifest.taken_ms,
                "cluster_id": manifest.cluster_id,
                "partitions": len(manifest.stored_ends),
                "segments": manifest.segments,
                "size_in_bytes": manifest.size,
                "added_bytes": manifest.stored_size,
                "faults": len(manifest.faults),
            }
        )
    write_table(pa.Table.from_pylist(rows, _BACKUPS), output)
    sys.exit(failed)


@command.command()
@REPOSITORY
@click.argument("name", required=False)
@output_options()
def show(repository: str, name: str | None, output: Output) -> None:
    """Show the partitions of a backup, by default of the newest one, and what it lacks.

    \b
    Example:
      kraftlog backup show nightly
    """  # noqa: D301  (\b keeps the example as it is)
    store = Repository(repository)
    name = _name(store, name)
    manifest = store.manifest(name)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    columns = ["topic", "partition", "topic_id", "size", "base_offset", "last_epoch", "gaps", "objects"]
    for file in log_files(store.files(name, columns)):
        of = file["topic"], file["partition"]
        if file["base_offset"] is None:
            continue
        empty = {"segments": 0, "size_in_bytes": 0, "gaps": 0, "start_offset": file["base_offset"]}
        row = rows.setdefault(of, {**dict(zip(("topic", "partition"), of, strict=True)), **empty})
        row["topic_id"] = file["topic_id"]
        row["segments"] += 1
        row["size_in_bytes"] += file["size"]
        row["gaps"] += len(file["gaps"])
        row["last_epoch"] = file["last_epoch"] if file["last_epoch"] is not None else row.get("last_epoch")
        row["end_offset"] = manifest.ends.get(of)  # type: ignore[call-overload]
        row["stored_end_offset"] = manifest.stored_ends.get(of)  # type: ignore[call-overload]
    write_table(pa.Table.from_pylist([rows[of] for of in sorted(rows)], _PARTITIONS), output)
    for source in manifest.sources:
        node = "" if source.node_id is None else f" of node {source.node_id}"
        print(f"from {source.path}{node}{', shut down cleanly' if source.is_clean else ''}", file=sys.stderr)
    for note in manifest.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(manifest.faults, listed_by=None))


@command.command()
@REPOSITORY
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--data", is_flag=True, help="Read every byte: checksums of objects and batches, not only sizes.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Threads.")
def verify(repository: str, names: tuple[str, ...], data: bool, workers: int) -> None:
    """Compare backups, by default all, with the objects in the repository; the exit code is 1 if something differs.

    \b
    Example:
      kraftlog backup verify nightly --data
    """  # noqa: D301  (\b keeps the example as it is)
    store = Repository(repository)
    each = [_name(store, name) for name in names] or store.names()
    faults = store.verify(each, data=data, workers=workers)
    how = "every byte read" if data else "sizes compared"
    print(f"{len(each)} backup{'s' if len(each) != 1 else ''}, {how}: {len(faults) or 'no'} faults")
    sys.exit(report_faults(faults, listed_by=None))


@command.command()
@REPOSITORY
@click.argument("before")
@click.argument("after")
@output_options()
def diff(repository: str, before: str, after: str, output: Output) -> None:
    """Show the partitions that differ between two backups.

    \b
    Example:
      kraftlog backup diff nightly 20261124T030000.512Z 20261125T030001.034Z
    """  # noqa: D301  (\b keeps the example as it is)
    rows = []
    for one in Repository(repository).differences(before, after):
        change = "changed"
        if one.ends[0] is None or one.ends[1] is None:
            change = "added" if one.ends[0] is None else "removed"
        elif one.topic_ids[0] != one.topic_ids[1]:
            change = "created again"
        ends = {"end_offset_before": one.ends[0], "end_offset_after": one.ends[1]}
        sizes = {"size_before": one.sizes[0], "size_after": one.sizes[1]}
        rows.append({"topic": one.topic, "partition": one.partition, "change": change, **ends, **sizes})
    write_table(pa.Table.from_pylist(rows, _DIFFERENCES), output)


@command.command()
@REPOSITORY
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--keep", type=click.IntRange(min=1), help="Keep the newest backups, so many of them.")
def prune(repository: str, names: tuple[str, ...], keep: int | None) -> None:
    """Remove backups, and the objects that none of the others needs.

    \b
    Example:
      kraftlog backup prune nightly --keep 7
    """  # noqa: D301  (\b keeps the example as it is)
    done = Repository(repository).prune(keep=keep, names=names)
    for name in done.backups:
        print(f"{name}: removed")
    print(f"{done.objects} objects of {done.size:,} bytes that no backup needs: removed")


def _name(store: Repository, name: str | None) -> str:
    """Return the name of a backup that is there; by default that of the newest."""
    there = store.names()
    if not there:
        raise click.UsageError(f"{store.path}: the repository has no backup yet")
    if name is not None and name not in there:
        raise click.UsageError(f"{store.path}: no backup {name!r}; there are {', '.join(there)}")
    return name or there[-1]


COMMANDS = [command]
