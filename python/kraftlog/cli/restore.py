"""``kraftlog restore``: log directories of a new cluster, or topics and groups of a live one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import click

from kraftlog.backup.new_nodes import FIRST_PORT
from kraftlog.backup.quorum import QUORUMS
from kraftlog.backup.restore import REPORT_FILE, WORKERS, Restore, RestoredPartition, restore
from kraftlog.broker.errors import ReplayError
from kraftlog.broker.live_restore import LiveRestore, restore_live
from kraftlog.cli import options
from kraftlog.cli.client import CLIENT_CONFIG, COMPRESSION, RATE, TIMEOUT, settings_of
from kraftlog.cli.live_restore import live_lines
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.report import EXIT_FAULTS, report_faults
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
@click.option("--directories", type=click.IntRange(min=1), help="Log directories of each node. 1 by default.")
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
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    help="Restore into this live cluster: its topics, records and groups' offsets. Several with commas between them.",
)
@RATE
@COMPRESSION
@CLIENT_CONFIG
@TIMEOUT
@options.EXCLUDE_KEYS
@options.HEAL
@click.option("--strict", is_flag=True, help="Stop at the first fault, and write nothing more.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be written, and what is missing.")
@click.option("--workers", type=click.IntRange(min=1), help=f"Threads. {WORKERS} by default.")
@click.option("--json", "as_json", is_flag=True, help=f"Print the report as JSON, as in {REPORT_FILE}.")
@click.option("--page", type=click.Path(dir_okay=False), help="Write the report as a page of HTML to this file, too.")
@options.FORCE
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def restore_command(
    paths: LogPaths,
    target: Path,
    nodes: int | None,
    addresses: tuple[str, ...],
    directories: int | None,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    renamed: tuple[tuple[str, str], ...],
    metadata_offset: int | None,
    new_cluster_id: str | None,
    quorum: str | None,
    bootstrap_server: str | None,
    rate: str | None,
    compression: str | None,
    client_config: Path | None,
    timeout: float,
    exclude_keys: Path | None,
    heal: bool,
    strict: bool,
    dry_run: bool,
    workers: int | None,
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

    With --bootstrap-server the topics are created in a live cluster, with their partitions and configs. Committed
    records are produced, and groups get the offsets at which they read on with the same record. TARGET gets the mapping
    of offsets and the report; the same command with the same TARGET resumes. Topics that are there must be empty, and
    groups have no offsets in them. Needs confluent-kafka (pip install 'kraftlog[replay]').

    \b
    Examples:
      kraftlog restore shop drill --cut end --nodes 3
      kraftlog restore shop evidence --bootstrap-server localhost:9092 -t 'orders*' --dry-run
    """  # noqa: D301  (\b keeps the examples as they are)
    if nodes is not None and addresses:
        raise click.UsageError("--nodes does not go with --node")
    of_nodes = {"nodes": nodes, "node": addresses, "directories": directories, "quorum": quorum}
    of_nodes |= {"new-cluster-id": new_cluster_id, "workers": workers, "page": page}
    of_client = {"rate": rate, "compression": compression, "client-config": client_config}
    other = next((name for name, value in (of_nodes if bootstrap_server else of_client).items() if value), None)
    if other is not None:
        how = "cannot be used with" if bootstrap_server else "requires"
        raise click.UsageError(f"--{other} {how} --bootstrap-server")
    which: _Which = {
        "topics": topics or None,
        "partitions": partitions or None,
        "rename": dict(renamed),
        "metadata_offset": metadata_offset,
        "heal": heal,
        "strict": strict,
        "dry_run": dry_run,
        "exclude_keys": exclude_keys,
    }
    done: Restore | LiveRestore
    obstacles: list[str] = []
    log = open_log(paths)
    if page is not None:
        check_package()
        check_target(page, log.folders, "--page", force=force)
    with progress_bar(log.size_in_bytes, wanted=not no_progress and not dry_run) as bar:
        if bootstrap_server is None:
            done = restore(
                paths,
                target,
                nodes=addresses or nodes or 1,
                directories=directories or 1,
                new_cluster_id=new_cluster_id,
                quorum=quorum,
                workers=workers or WORKERS,
                on_progress=bar,
                **which,
            )
            lines = _lines(done, target, dry_run=dry_run)
        else:
            try:
                done = restore_live(
                    paths,
                    bootstrap_server,
                    target,
                    rate=rate,
                    compression=compression,
                    client_settings=settings_of(client_config),
                    timeout=timeout,
                    on_progress=bar,
                    **which,
                )
            except ReplayError as error:
                print(f"kraftlog: {error}", file=sys.stderr)
                sys.exit(EXIT_FAULTS)
            lines = live_lines(done, dry_run=dry_run)
            obstacles = done.obstacles
    if as_json:
        print(json.dumps(done.to_dict(), indent=1))
    else:
        for line in lines:
            print(line)
    if page is not None and isinstance(done, Restore):
        with open_target(page, force=force) as file:
            for piece in restored_page(done):
                file.write(piece.encode())
    for note in done.notes:
        print(note, file=sys.stderr)
    for obstacle in obstacles:
        print(f"in the way: {obstacle}", file=sys.stderr)
    sys.exit(report_faults(done.faults) | (EXIT_FAULTS if obstacles else 0))


class _Which(TypedDict):
    """Options of both kinds of restore."""

    topics: tuple[str, ...] | None
    partitions: tuple[int, ...] | None
    rename: dict[str, str]
    metadata_offset: int | None
    heal: bool
    strict: bool
    dry_run: bool
    exclude_keys: Path | None


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
