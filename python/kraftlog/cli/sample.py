"""``kraftlog sample``: log directories that a real Kafka wrote, to try the other commands with."""

from __future__ import annotations

from pathlib import Path

import click

from kraftlog.cli.target import check_new_folder
from kraftlog.disk.disk import disk

SAMPLE_LOGS = Path(__file__).parent / "sample_logs"
CONTENTS = {
    "broker": "a topic with committed, aborted and open transactions, and the topics of the coordinators",
    "codecs": "two topics with compressed batches",
    "damaged": "a partition with a flipped bit",
    "failover": "__cluster_metadata with a transaction that a controller failover aborted",
    "future": "the topics of the coordinators, with records of a newer Kafka",
    "groups": "__consumer_offsets of classic, consumer and share groups",
    "hanging": "a transaction that no coordinator will end",
    "metadata": "__cluster_metadata of a cluster, with its snapshots",
    "salvage": "a partition with a wrong batch length",
    "tiered": "a log directory (logs) and the remote tier of its topic (tier)",
    "torn": "a partition whose last batch is cut off, as after a crash",
}


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def sample(directory: Path) -> None:
    """Write sample log directories, which a real Kafka made, to a new or empty folder.

    The examples of the other commands read them. They take 300 KB. Each folder is the log directory of one broker, or
    a part of it; damaged, salvage and torn were changed by hand, and future was written with Kafka's classes.

    \b
    Example:
      kraftlog sample sample
    """  # noqa: D301  (\b keeps the example as it is)
    check_new_folder(directory, option="DIR")
    disk().make_folder(directory)
    for name in CONTENTS:
        _copy(SAMPLE_LOGS / name, directory / name)
    longest = max(map(len, CONTENTS))
    for name, what in CONTENTS.items():
        click.echo(f"{directory / name}{' ' * (longest - len(name))}  {what}")


def _copy(source: Path, target: Path) -> None:
    disk().make_new_folder(target)
    for entry in disk().entries(source):
        if entry.is_dir:
            _copy(source / entry.name, target / entry.name)
        else:
            with disk().create(target / entry.name) as file:
                file.append(disk().read_bytes(source / entry.name))


COMMANDS = [sample]
