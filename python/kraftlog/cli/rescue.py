"""``kraftlog rescue``: new controllers from one metadata log that is left."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kraftlog.backup.quorum import QUORUMS
from kraftlog.backup.rescue import BROKERS_FILE, PROPERTIES_FILE, rescue
from kraftlog.cli import options
from kraftlog.cli.report import report_faults


@click.command("rescue")
@options.LOCAL_PATHS
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--voter",
    "voters",
    required=True,
    multiple=True,
    metavar="ID@HOST:PORT",
    help="A new controller: node id, and where it listens. Repeatable.",
)
@click.option("--cluster-id", metavar="ID", help="By default that of meta.properties among the files.")
@click.option("--quorum", type=click.Choice(QUORUMS), help="Where voters are named; by default as in the metadata log.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what may be lost.")
def rescue_command(
    paths: tuple[str, ...],
    target: Path,
    voters: tuple[str, ...],
    cluster_id: str | None,
    quorum: str | None,
    dry_run: bool,
) -> None:
    """Write log directories for new controllers, when the old ones are gone and brokers still have their data.

    PATHS are log directories with a metadata log, of a controller or of brokers; the one that goes farthest is taken.
    With all brokers among them, standard output names what may be lost: partitions and leader epochs that the metadata
    does not know. Brokers are only read. Cluster id and topic ids stay.

    \b
    Example:
      kraftlog rescue sample/metadata controllers --voter 100@localhost:9093 --cluster-id a3JhZnRsb2ctaW50ZXJvcA
    """  # noqa: D301  (\b keeps the example as it is)
    done = rescue(list(paths), target, voters=voters, cluster_id=cluster_id, quorum=quorum, dry_run=dry_run)
    print(f"cluster {done.cluster_id}: {done.topics_count:,} topics with {done.partitions_count:,} partitions")
    print(f"metadata up to offset {done.offset}, epoch {done.epoch}")
    for loss in done.losses:
        print(f"{loss.code}: {loss.message}")
    if not done.losses:
        print("nothing is known to be lost")
    for voter in () if dry_run else done.voters:
        properties = target / f"node-{voter.node_id}" / PROPERTIES_FILE
        print(f"controller {voter.node_id}: kafka-server-start {properties}")
    if not dry_run:
        print(f"brokers: {target / BROKERS_FILE} has the properties that replace those of their controllers")
    for note in done.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(done.faults))


COMMANDS = [rescue_command]
