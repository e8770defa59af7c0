"""``kraftlog replay``: the records of partitions, produced into a live broker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.broker.errors import ReplayError
from kraftlog.broker.replay import Target, replay_log
from kraftlog.cli import options
from kraftlog.cli.client import CLIENT_CONFIG, COMPRESSION, RATE, TIMEOUT, settings_of
from kraftlog.cli.progress import progress_bar
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import EXIT_FAULTS, report_faults
from kraftlog.codec.options import READ_COMMITTED
from kraftlog.disk.disk import disk
from kraftlog.layout.discover import LogPaths
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.user_options import read_options


@click.command()
@options.PATHS
@click.option("--to", required=True, metavar="HOST:PORT", help="A broker; several with commas between them.")
@click.option(
    "--mapping",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that says which offset became which. With that of an earlier replay, this one goes on.",
)
@options.WHICH
@options.BOUNDS
@options.INCLUDE_DELETED
@options.HEAL
@options.CUT
@options.RENAME
@click.option(
    "--committed", is_flag=True, help="As of extract; aborted and open transactions are left out in any case."
)
@click.option("--create-topics", "creates", is_flag=True, help="Make topics that the target does not have.")
@click.option("--append", "appends", is_flag=True, help="Also into partitions that hold records already.")
@RATE
@COMPRESSION
@redacts
@options.EXCLUDE_KEYS
@CLIENT_CONFIG
@TIMEOUT
@click.option("--strict", is_flag=True, help="Stop at the first fault; what was committed before stays.")
@click.option("--no-progress", is_flag=True, help="No progress bar on a terminal.")
def replay(
    paths: LogPaths,
    to: str,
    mapping: Path,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    renamed: tuple[tuple[str, str], ...],
    committed: bool,
    creates: bool,
    appends: bool,
    rate: str | None,
    compression: str | None,
    rules: tuple[str, ...],
    key_file: Path | None,
    exclude_keys: Path | None,
    client_config: Path | None,
    timeout: float,
    no_progress: bool,
    **given: Any,
) -> None:
    """Produce the records of partitions into a live broker, those that a read_committed consumer would get.

    Keys, values, partitions, timestamps and headers stay as they are; offsets are those that the broker gives, and the
    mapping says which became which. After a crash, or when the broker was gone, the same command goes on where it
    ended: nothing is lost, and nothing comes twice. Records of a transaction in one partition become visible together;
    those of aborted and open ones are left out. Without --topic all topics but Kafka's own are replayed. Needs
    confluent-kafka (pip install 'kraftlog[replay]').

    \b
    Examples:
      kraftlog replay sample/broker --to localhost:9092 --mapping orders.csv -t orders --create-topics
      kraftlog replay sample/broker --to localhost:9092 --mapping copy.csv -t orders --rename orders=copy --rate 10MB
    """  # noqa: D301  (\b keeps the examples as they are)
    whole = open_log(paths, topics=topics or None)
    log = open_log(paths, topics=topics or None, partitions=partitions) if partitions else whole
    redaction = redaction_of(rules, key_file)
    target = Target(
        *(to, mapping, creates, appends, rate, compression, settings_of(client_config), timeout, redaction),
        ExcludedKeys.of_file(exclude_keys),
    )
    bounds = read_options(**given, isolation_level=READ_COMMITTED)
    try:
        with progress_bar(log.size_in_bytes, wanted=not no_progress) as bar:
            done = replay_log(log, whole, target, bounds, dict(renamed), is_chosen=bool(topics), on_progress=bar)
    except ReplayError as error:
        print(f"kraftlog: {error}", file=sys.stderr)
        if disk().entry(mapping) is not None:
            print("what was committed stays; the same command goes on behind it", file=sys.stderr)
        sys.exit(EXIT_FAULTS)
    for one in done.partitions:
        where = f", up to offset {one.end_offset - 1} of the log" if one.records else ""
        print(f"{one.topic}-{one.partition}: {one.records:,} records{where}")
    for note in done.notes:
        print(note, file=sys.stderr)
    sys.exit(report_faults(done.faults))


COMMANDS = [replay]
