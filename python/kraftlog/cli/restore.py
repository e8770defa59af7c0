"""``kraftlog restore``: log directories of a new cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kraftlog.backup.new_nodes import FIRST_PORT
from kraftlog.backup.quorum import QUORUMS
from kraftlog.backup.restore import REPORT_FILE, WORKERS, Restore, RestoredPartition, restore
from kraftlog.cli import options
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import check_target, open_target
from kraftlog.layout.discover import LogPaths
from kraftlog.log_report.page import check_package
from kraftlog.log_report.restored_page import restored_page
from kraftlog.tables.open_log import open as open_log


@click.command("restore")
@options.PATHS
@click.argument("target", type=click.Path(path_type=Path))
@options.CUT
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help=f"How many nodes, on this machine, with ports from {FIRST_PORT} on. 1 by default.",
)
@click.option(
    "--node",
    "addresses",
    multiple=True,
    metavar="ID@HOST:PORT[:CONTROLLER_PORT]",
    help="A node; without CONTROLLER_PORT a broker that is no controller. Repeatable.",
)
@click.option(
    "--directories", type=click.IntRange(min=1), default=1, show_default=True, help="Log directories of each node."
)
@click.option(
    "-t", "--topic", "topics", multiple=True, help="Only this topic, or those of a pattern: 'orders*'. Repeatable."
)
@click.option(
    "-p", "--partition", "partitions", multiple=True, type=int, help="Only records of this partition. Repeatable."
)
@options.RENAME
@click.option("--metadata-offset", type=int, help="Last record of the metadata log to apply; by default by the cut.")
@click.option("--new-cluster-id", metavar="ID", help="By default a random one.")
@click.option("--quorum", type=click.Choice(QUORUMS), help="Where voters are named; by default as in the source.")
@options.HEAL
@click.option("--strict", is_flag=True, help="Stop at the first fault, and write nothing.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be written, and what is missing.")
@click.option("--workers", type=click.IntRange(min=1), default=WORKERS, show_default=True, help="Threads.")
@click.option("--json", "as_json", is_flag=True, help=f"Print the report as JSON, as in {REPORT_FILE}.")
@click.option("--page", type=click.Path(dir_okay=False), help="Write the report as a page of HTML to this file, too.")
@options.FORCE
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def restore_command(
    paths: LogPaths,
    target: Path,
    nodes: int | None,
    addresses: tuple[str, ...],
    directories: int,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    renamed: tuple[tuple[str, str], ...],
    metadata_offset: int | None,
    new_cluster_id: str | None,
    quorum: str | None,
    heal: bool,
    strict: bool,
    dry_run: bool,
    workers: int,
    as_json: bool,
    page: str | None,
    force: bool,
    no_progress: bool,
) -> None:
    """Write log directories that a new cluster boots: topics, groups, transactions and metadata of another one.

    PATHS are the log directories of all brokers, with the metadata log of one of them or of a controller. TARGET, a new
    or empty folder, gets a folder for each node: its log directories, and server.properties with which it starts as it
    is. Offsets, topic ids, configs, ACLs, users, quotas and features stay; nodes and replicas are new. With --cut
    everything ends where no transaction is torn: transactions that are open there are aborted, and groups do not point
    behind it. Without --cut all that the files hold is copied, as is right for brokers that were stopped.

    \b
    Example:
      kraftlog restore shop drill --cut end --nodes 3
    """  # noqa: D301  (\b keeps the example as it is)
    if nodes is not None and addresses:
        raise click.UsageError("--nodes does not go with --node")
    log = open_log(paths)
    if page is not None:
        check_package()
        check_target(page, log.folders, "--page", force=force)
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not dry_run) as bar:
        done = restore(
            paths,
            target,
            nodes=addresses or nodes or 1,
            directories=directories,
            topics=topics or None,
            partitions=partitions or None,
            rename=dict(renamed),
            metadata_offset=metadata_offset,
            new_cluster_id=new_cluster_id,
            quorum=quorum,
            heal=heal,
            strict=strict,
            dry_run=dry_run,
            workers=workers,
            on_progress=bar,
        )
    if as_json:
        print(json.dumps(done.to_dict(), indent=1))
    else:
        for line in _lines(done, target, dry_run=dry_run):
            print(line)
    if page is not None:
        with open_target(page, force=force) as file:
            for piece in restored_page(done):
                file.write(piece.encode())
    for note in done.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(done.faults))


def _lines(done: Restore, target: Path, *, dry_run: bool) -> Iterator[str]:
    for one in done.partitions:
        yield _line(one)
    for group, offsets in done.groups.items():
        yield f"group {group}: {', '.join(f'{of} at {offset}' for of, offset in offsets.items())}"
    for moved in done.moved_offsets:
        new = "none" if moved.new_topic is None else f"{moved.new_topic}-{moved.partition} at {moved.new_offset}"
        yield f"group {moved.group}: {moved.topic}-{moved.partition} at {moved.offset} became {new}"
    for ended in done.ended_transactions:
        yield f"transactional id {ended.transactional_id}: {ended.before} became {ended.after}"
    size = sum(one.source_bytes if one.written is None else one.written.size_in_bytes for one in done.partitions)
    copies = sum(len(one.replicas) for one in done.partitions)
    what = f"{len(done.partitions)} partitions, {copies} replicas, {size:,} bytes of each first replica"
    if dry_run:
        yield f"nothing was written; there would be {what}"
        return
    yield what
    for node in done.nodes:
        yield f"node {node.node_id}: kafka-server-start {target / node.name / 'server.properties'}"


def _line(one: RestoredPartition) -> str:
    where = f"{one.name} on {', '.join(map(str, one.replicas))}"
    written = one.written
    if written is None:
        return f"{where}: {one.source_bytes:,} bytes" if one.has_data else f"{where}: no files"
    if not written.size_in_bytes:
        return f"{where}: no records, next offset {written.end_offset}"
    identical = "all copied" if one.is_identical else f"{written.copied_bytes:,} of them copied"
    return (
        f"{where}: {written.records:,} records up to offset {written.end_offset - 1}, "
        f"{written.size_in_bytes:,} bytes, {identical}, CRC-32C {written.crc32c:08x}"
    )


COMMANDS = [restore_command]
